/** One server-sent event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/** Reads the events of a stream, however its bytes are cut. One that is not finished when the stream ends is dropped. */
export async function* eventsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let event = 'message';
  let data: string[] = [];
  for await (const line of linesOf(chunks)) {
    const [, field, value = ''] = /^([^:]*)(?:: ?([\s\S]*))?$/.exec(line) ?? [];
    if (field === 'event') event = value;
    if (field === 'data') data.push(value);
    if (line !== '') continue;
    if (data.length > 0) yield { event, data: data.join('\n') };
    event = 'message';
    data = [];
  }
}

/** Lines end in LF, CR or CR LF, and the two of the last may come apart. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let endedInCr = false;
  for await (const chunk of chunks) {
    const decoded = decoder.decode(chunk, { stream: true });
    if (decoded === '') continue;
    const text = endedInCr && decoded.startsWith('\n') ? decoded.slice(1) : decoded;
    endedInCr = decoded.endsWith('\r');
    const [first = '', ...others] = text.split(/\r\n|\r|\n/);
    parts.push(first);
    for (const next of others) {
      yield parts.join('');
      parts = [next];
    }
  }
}
