import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { SpanExport } from '../../shared/config/otlp.js';

/** Response of a collector. `reason` is for the log. */
export type PostResult =
  | { readonly kind: 'taken'; readonly rejected: number; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** `pauseMs`: pause that the collector requests. */
  | { readonly kind: 'retry'; readonly reason: string; readonly pauseMs: number | null };

/** Sends a batch until the signal aborts. Never rejects. */
export type PostSpans = (body: string, signal: AbortSignal) => Promise<PostResult>;

/** Status codes after which the same batch may be sent again. */
const passing = [429, 502, 503, 504];
/** Maximum length of a response, in UTF-16 units. */
const maxAnswerLength = 64 * 1024;
const maxReasonLength = 200;

/**
 * Less than the five seconds after which many servers close idle connections, so that no closing connection is reused.
 */
const idleMs = 4000;

/**
 * Returns a function that sends batches as OTLP over HTTP, in JSON. The function follows no redirects, because the
 * headers may be secret. A `fetch` would take 30 MB, and starting a program costs more if the primary uses more memory.
 */
export function postSpans({ url, headers }: Pick<SpanExport, 'url' | 'headers'>): PostSpans {
  const { Agent, request } = new URL(url).protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, timeout: idleMs });
  return async (body, signal) => {
    const sent = { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    try {
      const post = request(url, { method: 'POST', agent, headers: sent, signal }).end(body);
      const { answer, text } = await answerTo(post);
      return isTaken(answer) ? takenAs(text) : refusedAs(answer);
    } catch (error) {
      if (signal.aborted) return { kind: 'refused', reason: (signal.reason as Error).message };
      const { code, message } = error as NodeJS.ErrnoException;
      return { kind: 'retry', reason: `no connection: ${code ?? message}`, pauseMs: null };
    }
  };
}

const isTaken = ({ statusCode = 0 }: IncomingMessage) => statusCode >= 200 && statusCode < 300;

/** Reads the response to its end, so that the connection can be reused. */
function answerTo(post: ClientRequest): Promise<{ readonly answer: IncomingMessage; readonly text: string }> {
  return new Promise((resolve, reject) => {
    post.on('error', reject).on('response', (answer) => {
      let text = '';
      answer
        .setEncoding('utf8')
        .on('error', reject)
        .on('end', () => resolve({ answer, text }));
      answer.on('data', (chunk: string) => {
        text += chunk;
        if (text.length <= maxAnswerLength) return;
        resolve({ answer, text: '' });
        answer.destroy();
      });
    });
  });
}

/** Returns the result of a successful request. A collector may reject part of a batch. */
function takenAs(text: string): PostResult {
  const { rejectedSpans, errorMessage } = partialSuccess(text);
  const rejected = Number(rejectedSpans ?? 0);
  const reason = typeof errorMessage === 'string' ? errorMessage.slice(0, maxReasonLength) : '';
  return {
    kind: 'taken',
    rejected: Number.isFinite(rejected) ? rejected : 0,
    reason: `spans were rejected: ${reason}`,
  };
}

function partialSuccess(text: string): { readonly rejectedSpans?: unknown; readonly errorMessage?: unknown } {
  try {
    return JSON.parse(text)?.partialSuccess ?? {};
  } catch {
    return {}; // a successful status counts, whatever the body
  }
}

function refusedAs({ statusCode = 0, headers }: IncomingMessage): PostResult {
  const reason = `the collector answered ${statusCode}`;
  if (!passing.includes(statusCode)) return { kind: 'refused', reason };
  const seconds = /^\d{1,6}$/.exec(headers['retry-after'] ?? '')?.[0];
  return { kind: 'retry', reason, pauseMs: seconds === undefined ? null : Number(seconds) * 1000 };
}
