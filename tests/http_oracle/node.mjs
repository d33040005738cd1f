// The reading of Node's parser (llhttp, strict); tell.h has the format. Its input comes
// byte by byte, so that the end of each request is seen.
import { readFileSync, writeSync } from 'node:fs'
import { METHODS } from 'node:http'
import { createRequire } from 'node:module'

// The parser alone is not public. This module, which exports it, is only deprecated.
process.noDeprecation = true
const { HTTPParser } = createRequire(import.meta.url)('_http_common')
const BYTES = Array.from({ length: 256 }, (_, byte) => Buffer.from([byte]))

const parser = new HTTPParser()
const nameOfMethod = [] // the names of methods, by the parser's numbers
let read, headers, url, headRead, at

parser[HTTPParser.kOnMessageBegin | 0] = () => {
  headers = []
  url = ''
  headRead = false
  read.push({ method: '', target: '', headers, body: '', keeps: false, end: 0 })
}
// Headers beyond the parser's buffer come in parts; trailers do, too, behind the head.
parser[HTTPParser.kOnHeaders | 0] = (more, target) => {
  if (headRead) return
  headers.push(...more)
  url += target
}
parser[HTTPParser.kOnHeadersComplete | 0] =
  (major, minor, rest, method, target, status, reason, upgrade, keeps) => {
    if (rest) headers.push(...rest)
    const request = read[read.length - 1]
    request.method = nameOfMethod[method] ?? method
    request.target = target ?? url
    request.keeps = keeps
    request.headers = headers
    headRead = true
    return 0
  }
parser[HTTPParser.kOnBody | 0] = (part) => {
  read[read.length - 1].body += part.latin1Slice()
}
parser[HTTPParser.kOnMessageComplete | 0] = () => {
  read[read.length - 1].end = at + 1
}

function judge(bytes) {
  read = []
  parser.initialize(HTTPParser.REQUEST, {}, 0, HTTPParser.kLenientNone ?? 0)
  let fault = ''
  for (at = 0; at < bytes.length && !fault; at++) {
    const result = parser.execute(BYTES[bytes[at]])
    if (result instanceof Error) fault = result.code || 'error'
    else if (result !== 1) fault = 'stopped'
  }
  const requests = read.filter((request) => request.end)
  for (const request of requests) {
    const flat = request.headers
    request.headers = []
    for (let i = 0; i < flat.length; i += 2) request.headers.push([flat[i], flat[i + 1]])
  }
  return JSON.stringify({ requests, fault })
}

for (const method of METHODS) {
  const target = method === 'CONNECT' ? 'a:1' : '/'
  judge(Buffer.from(`${method} ${target} HTTP/1.1\r\nHost: a\r\n\r\n`))
  nameOfMethod[read[0].method] = method
}

const batch = readFileSync(0)
const lines = []
for (let place = 0; place < batch.length;) {
  const length = batch.readUInt32LE(place)
  lines.push(judge(batch.subarray(place + 4, place + 4 + length)))
  place += 4 + length
}
const answer = Buffer.from(lines.join('\n') + '\n')
for (let sent = 0; sent < answer.length;) sent += writeSync(1, answer, sent)
