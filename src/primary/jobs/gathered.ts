import type { JobEvent, TextDelta } from '../../shared/job.js';

/** UTF-16 units: what one message of the channel may hold. */
const maxPieceLength = 16 * 1024;

/** For a caller that waits for the whole answer: its text in few pieces, each as large as one message may be. */
export async function* gathered(events: AsyncIterable<JobEvent>): AsyncGenerator<JobEvent> {
  let texts: string[] = [];
  let length = 0;
  const piece = (): TextDelta => {
    const text = texts.join('');
    texts = [];
    length = 0;
    return { type: 'text-delta', text };
  };
  for await (const event of events) {
    const isText = event.type === 'text-delta';
    const added = isText ? event.text.length : 0;
    if (length > 0 && (!isText || length + added > maxPieceLength)) yield piece();
    if (!isText) yield event;
    else texts.push(event.text);
    length += added;
  }
}
