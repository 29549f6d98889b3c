import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Longest time without a byte, milliseconds. */
  readonly silentMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Resolves with the head of the answer, whose body is still to be read; both fail when nothing comes for too long. No
 * fetch: on Node 20.20 it leaves a request for ever unanswered whose connection is closed at once, and may lose sight of
 * its signal.
 */
export function send({ method, url, headers, body, silentMs, signal }: HttpRequest): Promise<IncomingMessage> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, timeout: silentMs, agent: false, ...(signal && { signal }) });
    sent.once('timeout', () => sent.destroy(new Error(`nothing came for ${silentMs / 1000} s`)));
    sent.once('response', (response) => {
      // What ends the request ends its answer, too, but with a reason that tells nothing.
      sent.once('error', (error) => response.destroy(error));
      resolve(response);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
