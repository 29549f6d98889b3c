import { StringDecoder } from 'node:string_decoder';
import type { SentBody } from '../http/sent-answer.js';

/** The value that a text is, on one line. */
export function valueIn(text: SentBody): SentBody {
  return {
    get short() {
      return text.short === null ? null : onOneLine(unescaped(text.short));
    },
    async length() {
      if ((await text.length()) === null) return null;
      let bytes = 0;
      for await (const piece of this.pieces()) bytes += Buffer.byteLength(piece);
      return bytes;
    },
    async *pieces() {
      const decoder = new StringDecoder('utf8');
      let rest = '';
      for await (const piece of text.pieces()) {
        const all = rest + (typeof piece === 'string' ? piece : decoder.write(piece));
        rest = openEscape.exec(all)?.[1] ?? '';
        yield onOneLine(unescaped(all.slice(0, all.length - rest.length)));
      }
      yield unescaped(rest);
    },
  };
}

/** At the end of a piece: the first half of a pair of surrogates, and an escape that goes on in the next piece. */
const openEscape = /(?:^|[^\\])(?:\\\\)*((?:\\ud[89ab][\da-f]{2})?(?:\\(?:u[\da-f]{0,3})?)?)$/;

function unescaped(text: string): string {
  return JSON.parse(`"${text}"`);
}

/** In JSON, line ends stand between values only. They would end a server-sent event. */
function onOneLine(json: string): string {
  return json.replaceAll(/[\r\n]/g, ' ');
}

/** These one after the other, of which no long one is ever in memory as a whole. */
export function joined(parts: readonly (string | SentBody)[]): SentBody {
  return {
    get short() {
      const all = parts.map((part) => (typeof part === 'string' ? part : part.short));
      return all.includes(null) ? null : all.join('');
    },
    async length() {
      let bytes = 0;
      for (const part of parts) {
        const length = typeof part === 'string' ? Buffer.byteLength(part) : await part.length();
        if (length === null) return null;
        bytes += length;
      }
      return bytes;
    },
    async *pieces() {
      for (const part of parts) {
        if (typeof part === 'string') yield part;
        else yield* part.pieces();
      }
    },
  };
}
