import {
  type Attachment,
  type Image,
  isDocument,
  type Message,
  type ToolCall,
  type ToolResult,
  type Turn,
} from '../../contract/adapter.js';

/** Text or image of a prompt, in order. */
export type PromptPiece = string | Image;

/** Returns the prompt like `promptPieces`, but without images, for a program that cannot take them. */
export function promptOf(turn: Turn): string {
  return promptPieces(turn)
    .filter((piece) => typeof piece === 'string')
    .join('');
}

/** Returns the prompt for a program without roles: a single message unchanged, a conversation as a transcript. */
export function promptPieces(turn: Turn): readonly PromptPiece[] {
  const { system, history } = turn;
  if (system === null && history.length === 0) return piecesOf(turn);
  const instruction = system === null ? [] : [{ role: 'system', text: system } as const];
  const question = { role: 'user', text: turn.text, images: turn.images, results: turn.results } as const;
  return transcript([...instruction, ...[...history, question].flatMap(partsOf)]);
}

/** Splits a message: calls and results become messages of the transcript. */
function partsOf({ role, text, images = [], calls = [], results = [] }: WholeMessage): readonly TranscriptMessage[] {
  const isSilent = text === '' && images.length === 0 && calls.length + results.length > 0;
  return [
    ...results.map((result) => ({ role: 'result', ...resultText(result) }) as const),
    ...(isSilent ? [] : [{ role, text, images }]),
    ...calls.map((call) => ({ role: 'call', text: callText(call) }) as const),
  ];
}

function callText({ id, name, input }: ToolCall): string {
  return `{"id": ${JSON.stringify(id)}, "name": ${JSON.stringify(name)}, "arguments": ${input}}`;
}

function resultText({ id, text, images = [], isError }: ToolResult): MessageContent {
  const head = `${isError ? 'Error' : 'Result'} of the call ${JSON.stringify(id)}:\n`;
  return { text: head + text, images: images.map((image) => ({ ...image, at: image.at + head.length })) };
}

/**
 * Returns a further message for a program that already has a transcript. A message with the default mark could forge a
 * line of that transcript, so it gets a transcript with another mark.
 */
export function furtherPieces({ text, images }: Turn): readonly PromptPiece[] {
  if (!text.includes(usualMark)) return piecesOf({ text, images });
  return transcript([{ role: 'user', text, images }]);
}

export type MessageContent = Pick<Message, 'text' | 'images'>;

type WholeMessage = Pick<Message, 'role' | 'text' | 'images' | 'calls' | 'results'>;

interface TranscriptMessage extends MessageContent {
  readonly role: 'system' | 'call' | 'result' | Message['role'];
}

/**
 * Writes a line with the role and a mark before each message. No message contains the mark, so none can forge such a
 * line.
 */
function transcript(messages: readonly TranscriptMessage[]): readonly PromptPiece[] {
  const mark = freshMark(messages);
  return [
    `A conversation follows. A line "[${mark} role]" stands before each message and says who wrote it; nothing else does.`,
    ...messages.flatMap((message) => [`\n\n[${mark} ${message.role}]\n`, ...piecesOf(message)]),
    `\n\n[${mark} end] ${messages.at(-1)?.role === 'result' ? goOn : answer}\n\n`,
  ];
}

const answer = 'Answer the last message as the assistant, with the answer alone.';
const goOn = 'The last results have come. Continue as the assistant, with the next message alone.';

/**
 * Splits the text at the positions of its images. Pieces of text may be empty. Throws for a document, which the service
 * replaces by its text for a program that does not support documents.
 */
export function piecesOf(message: MessageContent): readonly PromptPiece[] {
  return attachedPieces(message).map((piece) => {
    if (typeof piece !== 'string' && isDocument(piece)) throw new Error('this program does not support documents');
    return piece;
  });
}

/** Splits the text at the positions of its images and documents. Pieces of text may be empty. */
export function attachedPieces({ text, images = [] }: MessageContent): readonly (string | Attachment)[] {
  const sorted = images.toSorted((a, b) => a.at - b.at);
  const pieces = sorted.flatMap((each, index) => [text.slice(sorted[index - 1]?.at ?? 0, each.at), each]);
  return [...pieces, text.slice(sorted.at(-1)?.at ?? 0)];
}

/**
 * Default mark. It has seven characters because V8 searches shorter strings by their first letter only, which is slow
 * in a text full of that letter.
 */
const usualMark = 'turn-11';

/**
 * Returns the default mark, which lets a program reuse its cache of an earlier transcript. If a message contains it,
 * returns a random mark, so that no text can prolong the search.
 */
function freshMark(messages: readonly TranscriptMessage[]): string {
  let mark = usualMark;
  while (messages.some(({ text }) => text.includes(mark))) mark = `turn-${Math.floor(Math.random() * 2 ** 52)}`;
  return mark;
}
