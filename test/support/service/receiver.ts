import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { until } from '../basics/until.js';

/** Secret that the receivers of tests share with the service. */
export const webhookSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

export interface ReceivedNotice {
  readonly id: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Whether the signature fits. */
  readonly isSigned: boolean;
}

/** Receiver of notices on a loopback port. Tests may replace `answer`. */
export class Receiver implements AsyncDisposable {
  readonly notices: ReceivedNotice[] = [];
  answer: (res: ServerResponse) => void = (res) => void res.writeHead(204).end();
  readonly #server = createServer(async (req, res) => {
    const body = await text(req);
    const { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signature } = req.headers;
    const key = Buffer.from(webhookSecret.slice('whsec_'.length), 'base64');
    const expected = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
    const { type, data } = JSON.parse(body);
    const isSigned = signature === `v1,${expected}`;
    this.notices.push({ id: String(id), path: req.url ?? '', headers: req.headers, type, data, isSigned });
    this.answer(res);
  });

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Variables for a service that sends its notices here. */
  get env(): Record<string, string> {
    return { MODEL_API_WEBHOOK_URL: `${this.url}/secret-path`, MODEL_API_WEBHOOK_SECRET: webhookSecret };
  }

  /** Resolves with the first notice of this type, past or future. */
  notice(type: string): Promise<ReceivedNotice> {
    return until(() => this.notices.find((notice) => notice.type === type), `a notice ${type}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close().closeAllConnections();
    await once(this.#server, 'close');
  }
}
