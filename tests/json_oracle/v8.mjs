// V8's verdict on each document of a batch, one byte each: 0 accepted, 1 no UTF-8, 2
// refused. Standard input is that of ours.c.
import { readFileSync, writeFileSync } from 'node:fs'

const batch = readFileSync(0)
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function judge(bytes) {
  let text
  try {
    text = decoder.decode(bytes)
  } catch {
    return 1
  }
  try {
    JSON.parse(text)
  } catch {
    return 2
  }
  return 0
}

const verdicts = []
for (let at = 0; at < batch.length;) {
  const length = batch.readUInt32LE(at)
  verdicts.push(judge(batch.subarray(at + 4, at + 4 + length)))
  at += 4 + length
}
writeFileSync(1, Uint8Array.from(verdicts))
