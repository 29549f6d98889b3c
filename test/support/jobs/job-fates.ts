import { type IncomingMessage, request } from 'node:http';
import type { Outcome } from '../../../src/shared/job.js';

/** Result of one request, as its client knows it. */
export interface Fate {
  readonly id: string;
  /** `left`: the client disconnected after its job was admitted. `lost`: the connection broke. */
  readonly kind: 'answered' | 'refused' | 'left' | 'lost';
  /** Outcome of the job, if the client received it. */
  readonly outcome: Outcome | null;
  /** Whether the job was admitted; null if the connection broke before a first byte. */
  readonly wasAdmitted: boolean | null;
  /** Errno of the broken connection. */
  readonly error?: string;
  /** Conversation of an answered chat. */
  readonly conversationId?: string;
  /** Text of a whole answer. */
  readonly response?: string;
  /** HTTP status of a refusal. */
  readonly status?: number;
}

export interface JobOrder {
  readonly id: string;
  readonly path: '/ask' | '/chat';
  readonly body: Readonly<Record<string, unknown>>;
  /** Delay from the first event to the client's disconnect; null to stay. Only for bodies that request a stream. */
  readonly leaveAfterMs: number | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends one job on a new connection, and returns its result. Never rejects. */
export function fateOf(port: number, order: JobOrder): Promise<Fate> {
  const { id, path, body, leaveAfterMs } = order;
  return new Promise((resolve) => {
    const end = (fate: Omit<Fate, 'id'>) => resolve({ id, ...fate });
    let text = '';
    const lost = (error: NodeJS.ErrnoException) => {
      const wasAdmitted = text.includes('event: ') ? true : null;
      end({ kind: 'lost', outcome: null, wasAdmitted, error: error.code ?? error.message });
    };
    const headers = { 'content-type': 'application/json', 'x-request-id': id, ...order.headers };
    const options = { host: '127.0.0.1', port, path, method: 'POST', headers, agent: false as const };
    const clientRequest = request(options, (response) => {
      response.setEncoding('utf8').on('data', (piece: string) => {
        if (text === '' && leaveAfterMs !== null && isStream(response)) setTimeout(leave, leaveAfterMs);
        text += piece;
      });
      response.once('error', lost).once('end', () => end(fateFromAnswer(response, text)));
    });
    const leave = () => {
      end({ kind: 'left', outcome: null, wasAdmitted: true });
      clientRequest.destroy();
    };
    clientRequest.on('error', lost).end(JSON.stringify(body));
  });
}

function isStream({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.startsWith('text/event-stream') ?? false;
}

const refusals = new Set([400, 401, 403, 404, 409, 413, 422, 429, 503]);

function fateFromAnswer(response: IncomingMessage, text: string): Omit<Fate, 'id'> {
  const status = response.statusCode ?? 0;
  if (isStream(response)) return streamed(text);
  if (status === 200) return answered(text);
  const { error } = JSON.parse(text) as { error: Outcome };
  if (refusals.has(status) && error !== 'shutting_down')
    return { kind: 'refused', outcome: null, wasAdmitted: false, status };
  return { kind: 'answered', outcome: error, wasAdmitted: true };
}

function streamed(text: string): Omit<Fate, 'id'> {
  const [, event, data = ''] = /event: (done|error)\ndata: (.+)\n\n$/.exec(text) ?? [];
  if (event === undefined) return { kind: 'lost', outcome: null, wasAdmitted: true, error: 'cut' };
  if (event === 'done') return answered(data);
  return { kind: 'answered', outcome: (JSON.parse(data) as { error: Outcome }).error, wasAdmitted: true };
}

function answered(json: string): Omit<Fate, 'id'> {
  const { response = '', conversation_id: conversationId } = JSON.parse(json) as Readonly<Record<string, string>>;
  return {
    kind: 'answered',
    outcome: 'ok',
    wasAdmitted: true,
    response,
    ...(conversationId !== undefined && { conversationId }),
  };
}
