import { until } from '../basics/until.js';
import type { Answer, Service } from '../service/service.js';

/** Uploads a file. */
export async function upload(
  service: Pick<Service, 'url'>,
  text: string | Blob,
  fields: Readonly<Record<string, string>> = { purpose: 'batch' },
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const form = new FormData();
  form.set('file', new Blob([text]), 'prompts.jsonl');
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  const answer = await fetch(`${service.url}/v1/files`, { method: 'POST', body: form, headers });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

/** Returns the line of a batch with one prompt. */
export function promptLine(id: string, prompt: string): string {
  const body = { model: 'default', messages: [{ role: 'user', content: prompt }] };
  return JSON.stringify({ custom_id: id, method: 'POST', url: '/v1/chat/completions', body });
}

export function createBatch(service: Service, file: unknown, more: object = {}, headers = {}): Promise<Answer> {
  const order = { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h', ...more };
  return service.post('/v1/batches', order, headers);
}

export interface BatchBody {
  readonly id: string;
  readonly status: string;
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
}

const ended: readonly string[] = ['completed', 'cancelled', 'expired', 'failed'];

/** Waits for the end of a batch. */
export async function untilEnded(service: Service, id: unknown, withinMs = 60_000, headers = {}): Promise<BatchBody> {
  return until(
    async () => {
      const { status, body } = await service.get(`/v1/batches/${id}`, headers);
      const batch = body as unknown as BatchBody;
      return status === 200 && ended.includes(batch.status) ? batch : null;
    },
    'the end of the batch',
    withinMs,
  );
}

export interface ResultLine {
  readonly custom_id: string | null;
  readonly response: {
    readonly status_code: number;
    readonly body: {
      readonly choices?: readonly { readonly message: { readonly content: string } }[];
      readonly error?: { readonly code: string; readonly message: string; readonly param: string | null };
    };
  } | null;
  readonly error: { readonly code: string } | null;
}

/** Returns the lines of a file with results; none if there is no file. */
export async function resultsIn(
  service: Pick<Service, 'url'>,
  file: string | null,
  headers = {},
): Promise<ResultLine[]> {
  if (file === null) return [];
  const text = await (await fetch(`${service.url}/v1/files/${file}/content`, { headers })).text();
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ResultLine);
}
