/** A load balancer: one address in front of several servers. */
import { once } from "node:events";
import net from "node:net";

/** Connects each client to one of several servers, in turn; open connections can be
 * cut. */
export class Balancer {
    count = 0;
    readonly #ports: number[];
    readonly #open = new Set<net.Socket>();
    readonly #listener = net.createServer((near) => this.#serve(near));

    constructor(...urls: string[]) {
        this.#ports = urls.map((url) => Number(new URL(url).port));
    }

    #serve(near: net.Socket): void {
        const port = this.#ports[this.count++ % this.#ports.length] ?? 0;
        const far = net.connect(port, "127.0.0.1");
        for (const [one, other] of [
            [near, far],
            [far, near],
        ] as const) {
            this.#open.add(one);
            one.on("error", () => other.destroy());
            one.on("close", (failed) => {
                this.#open.delete(one);
                if (failed) other.destroy();
                else other.end(); // bytes that were written still arrive
            });
            one.pipe(other);
        }
    }

    async listen(): Promise<string> {
        this.#listener.listen(0, "127.0.0.1");
        await once(this.#listener, "listening");
        const { port } = this.#listener.address() as net.AddressInfo;
        return `http://127.0.0.1:${port}/mcp`;
    }

    /* Closes all connections. A reset (resetAndDestroy) leaves Node 20 spinning at the
     * end of the process. */
    cut(): void {
        for (const socket of this.#open) socket.destroy();
    }

    close(): void {
        this.cut();
        this.#listener.close();
    }
}
