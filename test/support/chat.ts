import { type Answer, type Service, script, startWithProgram } from './service.js';

/** What a turn answered, as far as tests look at it. */
export interface Chat {
  readonly id: string;
  readonly response: string;
  readonly count: number;
  readonly tokens: number;
}

type Headers = Record<string, string>;

/** A turn that goes well; `id` null begins a conversation. */
export async function chat(service: Service, message: string, id: string | null = null, headers: Headers = {}) {
  return chatOf(await service.post('/chat', { message, ...(id !== null && { conversation_id: id }) }, headers));
}

export function chatOf({ status, body, text }: Answer): Chat {
  if (status !== 200) throw new Error(text);
  const { conversation_id: id, response, message_count: count, tokens_used: tokens } = body;
  return { id, response, count, tokens } as Chat;
}

/** A turn that the client can give up. */
export function chatAndLeave(service: Service, message: string, id: string | null = null) {
  const client = new AbortController();
  const body = { message, ...(id !== null && { conversation_id: id }) };
  const gone = service.post('/chat', body, {}, client.signal).then(
    () => Promise.reject(new Error('it was answered')),
    (error: Error) => expect(error.name).toBe('AbortError'),
  );
  return {
    async leave() {
      client.abort();
      await gone;
    },
  };
}

/** A service whose model answers with what users have said, `fail`s and `hang`s. */
export function startListener(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  return startWithProgram(script('tells-what-it-heard.pl'), { MODEL_API_QUEUE_TIMEOUT_MS: '60000', ...env });
}

/** An answer but for its request id. */
function told({ status, body: { request_id, ...rest } }: Answer) {
  return { status, ...rest };
}

/** What is answered to everything that can be tried with an id. */
export async function attempts(service: Service, id: string, headers: Headers = {}) {
  const path = `/chat/${encodeURIComponent(id)}`;
  return [
    told(await service.post('/chat', { message: 'Hi', conversation_id: id }, headers)),
    told(await service.get(path, headers)),
    told(await service.get(`${path}/messages`, headers)),
    told(await service.post(`${path}/fork`, {}, headers)),
    told(await service.delete(path, headers)),
  ];
}

const message = 'no such conversation';

/** What is answered to an id that can't be used, whatever the cause. */
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
