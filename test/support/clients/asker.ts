/** Client of a running service. */
export interface Asker {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Sends one request. Resolves with the status when the whole answer has arrived. */
export type Send = (signal?: AbortSignal) => Promise<number>;

export async function post({ url, headers }: Asker, path: string, body: object | string, signal?: AbortSignal) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const sent = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: text };
  const answer = await fetch(url + path, { ...sent, ...(signal && { signal }) });
  return { status: answer.status, body: JSON.parse(await answer.text()) as { readonly id: string } };
}

/** Uploads a file, and resolves with its id. */
export async function uploaded({ url, headers }: Asker, bytes: Buffer, purpose = 'user_data'): Promise<string> {
  const form = new FormData();
  form.set('purpose', purpose);
  form.set('file', new Blob([bytes]), 'a');
  const answer = await fetch(`${url}/v1/files`, { method: 'POST', headers, body: form });
  if (answer.status !== 200) throw new Error(`a file was not stored: ${answer.status} ${await answer.text()}`);
  return ((await answer.json()) as { readonly id: string }).id;
}
