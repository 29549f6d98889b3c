import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
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
/** All that is read of an answer, UTF-16 units. */
const maxAnswerLength = 64 * 1024;
const maxReasonLength = 200;

/** Below the five seconds after which many servers close a connection: none is used that is about to close. */
const idleMs = 4000;

/**
 * Sends batches as OTLP over HTTP, in JSON. Redirects are not followed: the headers may be secrets. Without `fetch`, which
 * takes 30 MB; and each start of a program costs the more, the more memory the primary has.
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

/** Read to its end, so that the connection can be used again. */
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

function refusedAs({ statusCode = 0, headers }: IncomingMessage): PostResult {
  const reason = `the collector has answered ${statusCode}`;
  if (!passing.includes(statusCode)) return { kind: 'refused', reason };
  const seconds = /^\d{1,6}$/.exec(headers['retry-after'] ?? '')?.[0];
  return { kind: 'retry', reason, pauseMs: seconds === undefined ? null : Number(seconds) * 1000 };
}
