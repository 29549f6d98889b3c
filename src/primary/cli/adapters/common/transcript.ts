import type { Image, Message, ToolCall, ToolResult, Turn } from '../../contract/adapter.js';

/** A part of a prompt, in its place. */
export type PromptPiece = string | Image;

/** As `promptPieces`, for a program that can be shown no images. */
export function promptOf(turn: Turn): string {
  return promptPieces(turn)
    .filter((piece) => typeof piece === 'string')
    .join('');
}

/** The program knows no roles: a single prompt is passed as it is, anything more as a transcript. */
export function promptPieces(turn: Turn): readonly PromptPiece[] {
  const { system, history } = turn;
  if (system === null && history.length === 0) return piecesOf(turn);
  const instruction = system === null ? [] : [{ role: 'system', text: system } as const];
  const asked = { role: 'user', text: turn.text, images: turn.images, results: turn.results } as const;
  return transcript([...instruction, ...[...history, asked].flatMap(partsOf)]);
}

/** Calls and their results stand in messages of their own. */
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
 * A further message to a program that has a transcript already. One that holds the usual mark could forge a line of
 * that, so it stands in a transcript of its own.
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

/** A line with the role and a mark stands before each message. No message holds the mark, so none can forge such a line. */
function transcript(messages: readonly TranscriptMessage[]): readonly PromptPiece[] {
  const mark = freshMark(messages);
  return [
    `A conversation follows. A line "[${mark} role]" stands before each message and says who wrote it; nothing else does.`,
    ...messages.flatMap((message) => [`\n\n[${mark} ${message.role}]\n`, ...piecesOf(message)]),
    `\n\n[${mark} end] ${messages.at(-1)?.role === 'result' ? goOn : answer}\n\n`,
  ];
}

const answer = 'Answer the last message as the assistant, with the answer alone.';
const goOn = 'The last results have come. Go on as the assistant, with what comes next alone.';

/** The text, cut where its images stand. Pieces of text may be empty. */
export function piecesOf({ text, images = [] }: MessageContent): readonly PromptPiece[] {
  const sorted = images.toSorted((a, b) => a.at - b.at);
  const pieces = sorted.flatMap((image, index) => [text.slice(sorted[index - 1]?.at ?? 0, image.at), image]);
  return [...pieces, text.slice(sorted.at(-1)?.at ?? 0)];
}

/** Seven units: V8 searches for less by the first letter alone, which is slow in a text full of that letter. */
const usualMark = 'turn-11';

/**
 * The same one over and over keeps what a program may cache of an earlier transcript. Where a message holds it, a random
 * number is taken, so that no text makes the search long.
 */
function freshMark(messages: readonly TranscriptMessage[]): string {
  let mark = usualMark;
  while (messages.some(({ text }) => text.includes(mark))) mark = `turn-${Math.floor(Math.random() * 2 ** 52)}`;
  return mark;
}
