import { StreamAnswer } from './event-stream.js';

/** Opens GET /status/stream, or another path where that is served. Resolves when the headers have come. */
export async function viewStatus(
  { url }: { readonly url: string },
  headers: Record<string, string> = {},
  path = '/status/stream',
): Promise<StreamAnswer> {
  const controller = new AbortController();
  const response = await fetch(url + path, { headers, signal: controller.signal });
  return new StreamAnswer(response, controller);
}
