import { createHash } from 'node:crypto';
import { askRequest } from '../../shared/api/ask.js';
import { IdSet } from '../../shared/text/id-set.js';
import type { TextLine } from '../../shared/text/json-lines.js';

/** Options of the command, used for lines of the input that do not set them. */
export interface LineDefaults {
  readonly model?: string | undefined;
  readonly system?: string | undefined;
  readonly schema?: unknown;
}

/** Line that can be sent to the service. */
export interface Prompt {
  readonly id: string | number;
  readonly line: number;
  readonly path: '/ask' | '/v1/chat/completions';
  /** Request body without the images that the line names as files. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly imageFiles: readonly string[];
}

/** Line that is not sent, because no service could answer it. */
export interface BadLine extends Pick<Prompt, 'id' | 'line'> {
  readonly fault: string;
}

export function isBad(prompt: Prompt | BadLine): prompt is BadLine {
  return 'fault' in prompt;
}

/** Parses lines into prompts, without blank lines. A line with the ID of an earlier line is bad. */
export async function* promptsIn(
  lines: AsyncIterable<TextLine>,
  defaults: LineDefaults,
): AsyncGenerator<Prompt | BadLine> {
  const ids = new IdSet();
  for await (const line of lines) {
    if (line.fault === null && line.text.trim() === '') continue;
    const prompt = promptOf(line, defaults);
    if (ids.add(String(prompt.id))) yield prompt;
    else yield { ...lineId(line), fault: 'id: an earlier line has the same id' };
  }
}

/**
 * Makes the ID of a line without one, from its number and its text. If either changes, the line counts as a new prompt.
 */
function lineId({ number, text }: TextLine): Pick<Prompt, 'id' | 'line'> {
  const digest = createHash('sha256').update(text.trim()).digest('hex').slice(0, 8);
  return { id: `${number}-${digest}`, line: number };
}

const forms = 'must be an object such as {"id": "a1", "prompt": "What is a relay?"}';
const maxIdLength = 512;
const withoutPrompt = askRequest.omit({
  ...{ prompt: true, images: true, files: true, thoughts: true, stream: true, callback_url: true },
});

function promptOf(line: TextLine, defaults: LineDefaults): Prompt | BadLine {
  const ownId = lineId(line);
  if (line.fault !== null) return { ...ownId, fault: line.fault };
  const fields = parsed(line.text);
  if (fields === null) return { ...ownId, fault: forms };
  const { id = ownId.id, messages, prompt, images, ...others } = fields;
  if (!isId(id)) return { ...ownId, fault: `id: must be a whole number, or text of 1 to ${maxIdLength} characters` };
  const named = { id, line: line.number };
  const settings = { ...defined(defaults), ...others };
  if ((prompt === undefined) === (messages === undefined)) return { ...named, fault: 'must have prompt or messages' };
  return messages === undefined
    ? askPromptOf(named, { prompt, ...settings }, images)
    : conversed(named, messages, { ...settings, ...(images !== undefined && { images }) });
}

type LineFields = Readonly<Record<string, unknown>>;
type Named = Pick<Prompt, 'id' | 'line'>;

function askPromptOf(named: Named, body: LineFields, images: unknown = []): Prompt | BadLine {
  if (!Array.isArray(images)) return { ...named, fault: 'images: must be a list' };
  const inline = images.filter((image) => typeof image !== 'string');
  const imageFiles = images.filter((image) => typeof image === 'string');
  if (inline.length > 0 && imageFiles.length > 0) return { ...named, fault: 'images: must all be files, or none' };
  const whole = inline.length === 0 ? body : { ...body, images: inline };
  const fault = faultOf(askRequest.omit({ thoughts: true, stream: true, callback_url: true }).safeParse(whole));
  return fault === null ? { ...named, path: '/ask', body: whole, imageFiles } : { ...named, fault };
}

/** Makes a prompt from messages in the format of OpenAI's API. The service checks their content. */
function conversed(named: Named, messages: unknown, settings: LineFields): Prompt | BadLine {
  if ('images' in settings) return { ...named, fault: 'images: must be in the messages, as image_url' };
  if (!Array.isArray(messages) || messages.length === 0 || !messages.every(hasRole))
    return { ...named, fault: 'messages: must be a list of objects with role and content' };
  const fault = faultOf(withoutPrompt.safeParse(settings));
  if (fault !== null) return { ...named, fault };
  const { system, schema, effort, ...more } = settings;
  const first = system === undefined ? [] : [{ role: 'system', content: system }];
  const form = schema !== undefined && {
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
  };
  const effortField = effort === undefined ? {} : { reasoning_effort: effort };
  const body = { model: 'default', ...more, messages: [...first, ...messages], ...form, ...effortField };
  return { ...named, path: '/v1/chat/completions', body, imageFiles: [] };
}

function parsed(text: string): LineFields | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as LineFields) : null;
  } catch {
    return null;
  }
}

function isId(id: unknown): id is string | number {
  return typeof id === 'string' ? id !== '' && id.length <= maxIdLength : Number.isSafeInteger(id);
}

function hasRole(message: unknown): boolean {
  return typeof Object(message).role === 'string';
}

function faultOf(result: ReturnType<typeof withoutPrompt.safeParse>): string | null {
  const issue = result.error?.issues[0];
  if (issue === undefined) return null;
  if (issue.code === 'unrecognized_keys') return `has an unknown field: ${issue.keys[0]}`;
  return [issue.path.join('.'), issue.message].filter((part) => part !== '').join(': ');
}

/** Removes undefined values, which would override the fields of a line. */
function defined(defaults: LineDefaults): LineFields {
  return Object.fromEntries(Object.entries(defaults).filter(([, value]) => value !== undefined));
}

interface AnsweredIds {
  /** Number of IDs, which may include some without a prompt in the input. */
  readonly size: number;
  has(id: string | number): boolean;
}

/** Yields the prompts that the output has not answered, and counts the answered ones. */
export class RemainingPrompts {
  readonly #prompts: AsyncIterable<Prompt | BadLine>;
  readonly #answers: AnsweredIds | null;
  #passed = 0;
  #isRead = false;

  constructor(prompts: AsyncIterable<Prompt | BadLine>, answers: AnsweredIds | null) {
    this.#prompts = prompts;
    this.#answers = answers;
  }

  /** Number of prompts that the output answers. Until all prompts are read, the number of lines in the output. */
  get skipped(): number {
    return this.#isRead ? this.#passed : (this.#answers?.size ?? 0);
  }

  async *prompts(): AsyncGenerator<Prompt | BadLine> {
    for await (const prompt of this.#prompts) {
      if (this.#answers?.has(prompt.id) === true) this.#passed++;
      else yield prompt;
    }
    this.#isRead = true;
  }
}
