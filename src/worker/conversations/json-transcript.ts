import type { TranscriptPart } from '../../shared/ipc/transcript.js';
import type { TranscriptWriter } from './transcript-writer.js';

/** Which string is open. */
type OpenPart = 'none' | 'system' | 'content' | 'image';

/** Ends what is open, so that the next message, or the end of the list, can follow. */
const closing: Readonly<Record<OpenPart, string>> = {
  none: 'null,"messages":[',
  system: '","messages":[',
  content: '"}',
  image: '"}]}',
};

/** A conversation as the body `ConversationMessages`. */
export class JsonTranscript implements TranscriptWriter {
  readonly type = 'application/json; charset=utf-8';
  readonly extension = 'json';
  readonly withImages = true;
  readonly #id: string;
  readonly #requestId: string;
  #open: OpenPart = 'none';

  constructor(id: string, requestId: string) {
    this.#id = id;
    this.#requestId = requestId;
  }

  head(): string {
    return `{"conversation_id":${JSON.stringify(this.#id)},"system":`;
  }

  write(part: TranscriptPart): string {
    if (part.type === 'text') return JSON.stringify(part.text).slice(1, -1);
    if (part.type === 'image-data') return part.data;
    if (part.type === 'image') return this.#image(part.mediaType);
    return part.role === 'system' ? this.#system() : this.#message(part.role);
  }

  tail(): string {
    return `${closing[this.#open]}],"request_id":${JSON.stringify(this.#requestId)}}`;
  }

  #system(): string {
    this.#open = 'system';
    return '"';
  }

  #message(role: string): string {
    const isFirst = this.#open === 'none' || this.#open === 'system';
    const before = `${closing[this.#open]}${isFirst ? '' : ','}`;
    this.#open = 'content';
    return `${before}{"role":"${role}","content":"`;
  }

  #image(mediaType: string): string {
    const before = this.#open === 'image' ? '"},' : '","images":[';
    this.#open = 'image';
    return `${before}{"media_type":"${mediaType}","data":"`;
  }
}
