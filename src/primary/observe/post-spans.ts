import type { SpanExport } from '../../shared/config/otlp.js';

/** What a collector has answered. `reason`: what is wrong, for the log. */
export type PostResult =
  | { readonly kind: 'taken'; readonly rejected: number; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** `pauseMs`: as the collector wants it. */
  | { readonly kind: 'retry'; readonly reason: string; readonly pauseMs: number | null };

/** Sends a batch, until the signal ends that. Never rejects. */
export type PostSpans = (body: string, signal: AbortSignal) => Promise<PostResult>;

/** Of these a collector says that the same batch may be taken later. */
const passing = [429, 502, 503, 504];
/** All that is read of an answer. */
const maxAnswerBytes = 64 * 1024;
const maxReasonLength = 200;

/** Sends batches as OTLP over HTTP, in JSON. Redirects are not followed: the headers may be secrets. */
export function postSpans({ url, headers }: Pick<SpanExport, 'url' | 'headers'>): PostSpans {
  return async (body, signal) => {
    try {
      const sent = { ...headers, 'content-type': 'application/json' };
      const answer = await fetch(url, { method: 'POST', headers: sent, body, signal, redirect: 'manual' });
      const text = await textOf(answer);
      return answer.ok ? takenAs(text) : refusedAs(answer);
    } catch (error) {
      if (signal.aborted) return { kind: 'refused', reason: (signal.reason as Error).message };
      return { kind: 'retry', reason: `no connection: ${causeOf(error)}`, pauseMs: null };
    }
  };
}

/** Read to its end, so that the connection can be used again. */
async function textOf({ body }: Response): Promise<string> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) return ''; // leaving the loop closes the connection
    text += decoder.decode(chunk, { stream: true });
  }
  return text;
}

/** A collector may take a part of a batch only. */
function takenAs(text: string): PostResult {
  const { rejectedSpans, errorMessage } = partialSuccess(text);
  const rejected = Number(rejectedSpans ?? 0);
  const said = typeof errorMessage === 'string' ? errorMessage.slice(0, maxReasonLength) : '';
  return { kind: 'taken', rejected: Number.isFinite(rejected) ? rejected : 0, reason: `spans were rejected: ${said}` };
}

function partialSuccess(text: string): { readonly rejectedSpans?: unknown; readonly errorMessage?: unknown } {
  try {
    return JSON.parse(text)?.partialSuccess ?? {};
  } catch {
    return {}; // it has taken them, whatever it says
  }
}

function refusedAs({ status, headers }: Response): PostResult {
  const reason = `the collector has answered ${status}`;
  if (!passing.includes(status)) return { kind: 'refused', reason };
  const seconds = /^\d{1,6}$/.exec(headers.get('retry-after') ?? '')?.[0];
  return { kind: 'retry', reason, pauseMs: seconds === undefined ? null : Number(seconds) * 1000 };
}

/** Of what fetch throws, the message says only that it has failed. */
function causeOf(error: unknown): string {
  const { cause, message } = error as Error;
  const { code } = (cause ?? {}) as NodeJS.ErrnoException;
  return code ?? (cause instanceof Error ? cause.message : message);
}
