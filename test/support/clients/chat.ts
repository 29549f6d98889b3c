import { type Answer, type Service, script, startWithProgram } from '../service/service.js';

/** Fields of a /chat answer that tests check. */
export interface Chat {
  readonly id: string;
  readonly response: string;
  readonly count: number;
  readonly tokens: number;
}

type Headers = Record<string, string>;

/** Sends a turn that must succeed; `id` null begins a conversation. */
export async function chat(service: Service, message: string, id: string | null = null, headers: Headers = {}) {
  return chatOf(await service.post('/chat', { message, ...(id !== null && { conversation_id: id }) }, headers));
}

export function chatOf({ status, body, text }: Answer): Chat {
  if (status !== 200) throw new Error(text);
  const { conversation_id: id, response, message_count: count, tokens_used: tokens } = body;
  return { id, response, count, tokens } as Chat;
}

/** Sends a turn that the client can abort. */
export function chatAndLeave(service: Service, message: string, id: string | null = null) {
  const client = new AbortController();
  const body = { message, ...(id !== null && { conversation_id: id }) };
  const answer = service.post('/chat', body, {}, client.signal).then(
    () => Promise.reject(new Error('it was answered')),
    (error: Error) => expect(error.name).toBe('AbortError'),
  );
  return {
    async leave() {
      client.abort();
      await answer;
    },
  };
}

/** Starts a service whose model answers with the user's texts, and understands `fail` and `hang`. */
export function startListener(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  return startWithProgram(script('tells-what-it-heard.pl'), { MODEL_API_QUEUE_TIMEOUT_MS: '60000', ...env });
}

/** Returns the status and the body without the request id. */
function withoutRequestId({ status, body: { request_id, ...rest } }: Answer) {
  return { status, ...rest };
}

/** Returns the answers to all requests that can use a conversation id. */
export async function attempts(service: Service, id: string, headers: Headers = {}) {
  const path = `/chat/${encodeURIComponent(id)}`;
  return [
    withoutRequestId(await service.post('/chat', { message: 'Hi', conversation_id: id }, headers)),
    withoutRequestId(await service.get(path, headers)),
    withoutRequestId(await service.get(`${path}/messages`, headers)),
    withoutRequestId(await service.post(`${path}/fork`, {}, headers)),
    withoutRequestId(await service.delete(path, headers)),
  ];
}

const message = 'no such conversation';

/** Expected answers for an id that is unusable, whatever the cause. */
export const unusable = [
  {
    status: 400,
    error: 'validation_error',
    message: `conversation_id: ${message}`,
    reason: 'conversation_unknown',
    details: [{ path: 'conversation_id', message }],
  },
  ...Array.from({ length: 4 }, () => ({ status: 404, error: 'not_found', message })),
];
