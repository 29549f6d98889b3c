/** Result of one request. */
export interface Fate {
  readonly prompt: string;
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly startedMs: number;
  readonly tookMs: number;
}

/** Settings and hooks of the load. */
export interface Load {
  readonly url: string;
  readonly count: number;
  /** Number of clients; each sends its next request after the previous answer. */
  readonly clients: number;
  readonly promptOf?: (index: number) => string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called after each answer, with the number of answers so far. */
  readonly onAnswer?: (answered: number) => void;
}

/** Sends this many requests, none twice; a missing answer has the status 0. */
export async function askMany(load: Load): Promise<Fate[]> {
  const { count, clients, promptOf = (index) => `job-${index}`, onAnswer = () => {} } = load;
  const fates: Fate[] = [];
  let next = 0;
  const client = async () => {
    while (next < count) {
      fates.push(await askOnce(load.url, promptOf(next++), load.headers));
      onAnswer(fates.length);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return fates;
}

export async function askOnce(url: string, prompt: string, headers = {}): Promise<Fate> {
  const startedMs = performance.now();
  const answer = await postJson(`${url}/ask`, { prompt }, headers).catch(() => ({ status: 0, body: {} }));
  return { prompt, ...answer, startedMs, tookMs: performance.now() - startedMs };
}

export async function postJson(url: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  const requestOptions = { method: 'POST', headers: { 'content-type': 'application/json', ...headers } };
  const response = await fetch(url, { ...requestOptions, body: JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: bodyOf(text) };
}

/** Parses JSON; other text is returned unchanged in an object. */
function bodyOf(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { text };
  }
}

/** Counts the results by status. */
export function byStatus(fates: readonly Fate[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of fates) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
