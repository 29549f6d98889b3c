import { type AddedMessage, type Attachment, isDocument, type JobRequest, type Message } from '../job.js';

/** Separator of two texts in one message. */
export const blankLine = '\n\n';

/**
 * Returns a conversation in which the roles alternate: empty messages are omitted, and adjacent messages of one role
 * are merged.
 */
export function inTurns(messages: readonly Message[]): Message[] {
  const turns: Message[][] = [];
  for (const message of messages.map(withoutBlanks).filter(saysSomething)) {
    const last = turns.at(-1);
    if (last?.[0]?.role === message.role) last.push(message);
    else turns.push([message]);
  }
  return turns.map(merged);
}

/** Removes a blank text: APIs reject it even in a message with calls. */
function withoutBlanks(message: Message): Message {
  return message.images === undefined && message.text.trim() === '' ? { ...message, text: '' } : message;
}

function saysSomething({ text, images, calls, results }: Message): boolean {
  return text !== '' || images !== undefined || calls !== undefined || results !== undefined;
}

/** Merges messages. Each is read only once, because there may be thousands. */
function merged(messages: readonly Message[]): Message {
  const [first, ...others] = messages as [Message, ...Message[]];
  if (others.length === 0) return first;
  let { text } = first;
  const all = [...(first.images ?? [])];
  for (const { text: next, images = [] } of others) {
    if (text !== '' && next !== '') text += blankLine;
    for (const image of images) all.push({ ...image, at: image.at + text.length });
    text += next;
  }
  const calls = messages.flatMap((message) => message.calls ?? []);
  const results = messages.flatMap((message) => message.results ?? []);
  return {
    ...{ role: first.role, text, ...(all.length > 0 && { images: all }) },
    ...(calls.length > 0 && { calls }),
    ...(results.length > 0 && { results }),
  };
}

/** Returns the bytes of what the client says about an attachment. */
function bytesOfContext(attachment: Attachment): number {
  return isDocument(attachment) ? Buffer.byteLength(attachment.context ?? '') : 0;
}

/** Returns the bytes of the attachments in base64, whose length equals its bytes, with their contexts. */
export function bytesOfImages(attachments: readonly Attachment[] = []): number {
  return attachments.reduce((sum, each) => sum + each.data.length + bytesOfContext(each), 0);
}

type AttachedParts = { readonly [field in 'images' | 'results']?: Message[field] | undefined };

/** Returns the images and documents of messages, also of tool results. */
export function attachmentsIn(messages: readonly AttachedParts[]): Attachment[] {
  return messages.flatMap(({ images = [], results = [] }) => [
    ...images,
    ...results.flatMap((result) => result.images ?? []),
  ]);
}

/** Whether the answer to these messages should cite a document. Documents in results of tools cannot be cited. */
export function hasCitations(messages: readonly AttachedParts[]): boolean {
  return messages.some(({ images = [] }) => images.some((each) => isDocument(each) && each.citations === true));
}

/** Tokens of an image at the largest size that Anthropic's models do not scale down. */
const tokensOfImage = 1600;
/** Tokens of a page, by Anthropic's documentation. */
const tokensOfPage = 2000;
/** Bytes of a token, for English text. */
const bytesOfToken = 4;

/** Estimates the tokens of an image or a document. */
export function attachmentTokens(attachment: Attachment): number {
  if (!isDocument(attachment)) return tokensOfImage;
  const { pages, data } = attachment;
  const textBytes = bytesOfContext(attachment) + (pages === undefined ? (data.length * 3) / 4 : 0);
  return (pages ?? 0) * tokensOfPage + Math.ceil(textBytes / bytesOfToken);
}

/** Returns the number of messages before the text of a request. */
export function messagesBefore({ earlier, history }: Pick<JobRequest, 'earlier' | 'history'>): number {
  return (earlier?.messageCount ?? 0) + history.length;
}

/** Returns the size of all texts and images of a request, in bytes. */
export function requestBytes({ system, schema, history, offer, ...asked }: JobRequest): number {
  const tools = (offer?.tools ?? []).flatMap(({ description, schema }) => [description, schema]);
  const messages = [asked, ...history];
  const texts = [system ?? '', schema ?? '', ...tools, ...messages.flatMap(messageTexts)];
  const shown = messages.flatMap((message) => [message, ...(message.results ?? [])]);
  const inTexts = texts.reduce((sum, each) => sum + Buffer.byteLength(each), 0);
  return shown.reduce((sum, { images }) => sum + bytesOfImages(images), inTexts);
}

type MessageParts = { readonly [field in 'calls' | 'results']?: Message[field] | undefined } & Pick<Message, 'text'>;

/** Returns all texts of a message. */
export function messageTexts({ text, calls = [], results = [] }: MessageParts): readonly string[] {
  return [text, ...calls.map(({ input }) => input), ...results.map((result) => result.text)];
}

/** Splits an answer at the messages that were added to it. Its calls belong to the last piece. */
export function splitAnswer(answer: Message, additions: readonly AddedMessage[]): Message[] {
  const { role, text } = answer;
  const starts = [0, ...additions.map(({ at }) => Math.min(at, text.length))];
  return starts.flatMap((start, index) => {
    const piece = text.slice(start, starts[index + 1]);
    const addition = additions[index];
    if (addition === undefined) return [{ ...answer, text: piece }];
    return [
      { role, text: piece },
      { role: 'user' as const, text: addition.text },
    ];
  });
}
