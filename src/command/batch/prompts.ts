import { createHash } from 'node:crypto';
import { type AskRequest, askRequest } from '../../shared/api/ask.js';
import type { Image } from '../../shared/job.js';
import { IdSet } from '../../shared/text/id-set.js';
import type { CommandError } from '../base/errors.js';
import type { Failure } from './ends.js';
import type { TextLine } from './json-lines.js';

/** Options of the command, used for lines of the input that do not set them. */
export interface LineDefaults {
  readonly model?: string | undefined;
  readonly system?: string | undefined;
  readonly schema?: unknown;
}

interface ReadImage {
  readonly media_type: Image['mediaType'];
  readonly data: string;
}

/** Reads images from files. Rejects with a CommandError. */
export type ImageReader = (paths: readonly string[]) => Promise<ReadImage[] | undefined>;

/** Line that can be sent to the service. */
export interface Prompt {
  readonly id: string | number;
  readonly line: number;
  /** Body of a request to POST /v1/chat/completions, without the images. */
  readonly body: PromptBody;
  /** Images before the text of the last message: paths of files, or data URLs. */
  readonly images: readonly string[];
}

interface PromptBody extends LineFields {
  readonly messages: readonly LineFields[];
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
const promptFields = askRequest.omit({ thoughts: true, stream: true });
const withoutPrompt = promptFields.omit({ prompt: true, images: true, files: true });

function promptOf(line: TextLine, defaults: LineDefaults): Prompt | BadLine {
  const ownId = lineId(line);
  if (line.fault !== null) return { ...ownId, fault: line.fault };
  const fields = parsed(line.text);
  if (fields === null) return { ...ownId, fault: forms };
  const { id = ownId.id, messages, prompt, ...others } = fields;
  if (!isId(id)) return { ...ownId, fault: `id: must be a whole number, or text of 1 to ${maxIdLength} characters` };
  const named = { id, line: line.number };
  const settings = { ...defined(defaults), ...others };
  if ((prompt === undefined) === (messages === undefined)) return { ...named, fault: 'must have prompt or messages' };
  if (messages === undefined) return askPromptOf(named, prompt, settings);
  return conversed(named, messages, settings);
}

type LineFields = Readonly<Record<string, unknown>>;
type Named = Pick<Prompt, 'id' | 'line'>;

function askPromptOf(
  named: Named,
  prompt: unknown,
  { images = [], files = [], ...settings }: LineFields,
): Prompt | BadLine {
  if (!Array.isArray(images)) return { ...named, fault: 'images: must be a list' };
  const inline = images.filter((image) => typeof image !== 'string');
  const { data, error } = promptFields.safeParse({ prompt, ...settings, images: inline, files });
  if (data === undefined) return { ...named, fault: faultOf(error) ?? forms };
  if (data.images?.some((image) => image.file_id !== undefined) === true)
    return { ...named, fault: 'images: must be paths or have data, because batches have no file_id for images' };
  const parts = (data.files ?? []).map(filePart);
  const content = parts.length === 0 ? prompt : [...parts, { type: 'text', text: prompt }];
  const shown = images.map((image) => (typeof image === 'string' ? image : dataUrl(image.media_type, image.data)));
  return chatPrompt(named, [{ role: 'user', content }], settings, shown);
}

function filePart({
  name,
  text,
  data,
  media_type: type,
  file_id: id,
}: NonNullable<AskRequest['files']>[number]): LineFields {
  if (id !== undefined) return { type: 'file', file: { filename: name, file_id: id } };
  const [usualType, base64] =
    text === undefined ? ['application/pdf', data ?? ''] : ['text/plain', Buffer.from(text).toString('base64')];
  return { type: 'file', file: { filename: name, file_data: dataUrl(type ?? usualType, base64) } };
}

/** Makes a prompt from messages in the format of OpenAI's API. The service checks their content. */
function conversed(named: Named, messages: unknown, settings: LineFields): Prompt | BadLine {
  if ('images' in settings) return { ...named, fault: 'images: must be in the messages, as image_url' };
  if (!Array.isArray(messages) || messages.length === 0 || !messages.every(hasRole))
    return { ...named, fault: 'messages: must be a list of objects with role and content' };
  const fault = faultOf(withoutPrompt.safeParse(settings).error);
  return fault === null ? chatPrompt(named, messages, settings, []) : { ...named, fault };
}

function chatPrompt(named: Named, messages: LineFields[], settings: LineFields, images: string[]): Prompt {
  const { system, schema, effort, ...more } = settings;
  const first = system === undefined ? [] : [{ role: 'system', content: system }];
  const form = schema !== undefined && {
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
  };
  const effortField = effort === undefined ? {} : { reasoning_effort: effort };
  const body = { model: 'default', ...more, messages: [...first, ...messages], ...form, ...effortField };
  return { ...named, body, images };
}

export function isFailure(body: object): body is Failure {
  return 'error' in body;
}

/** Returns the body of a prompt with its images. Resolves with the failure of a line that cannot be sent. */
export async function wholeBody(prompt: Prompt | BadLine, readImages: ImageReader): Promise<PromptBody | Failure> {
  if (isBad(prompt)) return { error: { code: 'validation_error', message: prompt.fault } };
  const { body, images } = prompt;
  const parts: object[] = [];
  for (const image of images) {
    const files = image.startsWith('data:') ? [] : await readImages([image]).catch((error: CommandError) => error);
    if (files instanceof Error)
      return { error: { code: 'validation_error', message: files.message.replace('--image', 'images') } };
    const [file] = files ?? [];
    const url = file === undefined ? image : dataUrl(file.media_type, file.data);
    parts.push({ type: 'image_url', image_url: { url } });
  }
  const last = body.messages.at(-1);
  if (parts.length === 0 || last === undefined) return body;
  const content = [...parts, ...(Array.isArray(last.content) ? last.content : [{ type: 'text', text: last.content }])];
  return { ...body, messages: [...body.messages.slice(0, -1), { ...last, content }] };
}

function dataUrl(type: string, base64: string): string {
  return `data:${type};base64,${base64}`;
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

function faultOf(error: ReturnType<typeof withoutPrompt.safeParse>['error']): string | null {
  const issue = error?.issues[0];
  if (issue === undefined) return null;
  if (issue.code === 'unrecognized_keys') return `has an unknown field: ${issue.keys[0]}`;
  return [issue.path.join('.'), issue.message].filter((part) => part !== '').join(': ');
}

/** Removes undefined values, which would override the fields of a line. */
function defined(defaults: LineDefaults): LineFields {
  return Object.fromEntries(Object.entries(defaults).filter(([, value]) => value !== undefined));
}

/** Yields the prompts without a line in the output. Calls `end` at its end with the number of the others. */
export async function* remainingPrompts(
  prompts: AsyncIterable<Prompt | BadLine>,
  hasLine: (id: string | number) => boolean,
  end: (skipped: number) => void,
): AsyncGenerator<Prompt | BadLine> {
  let skipped = 0;
  for await (const prompt of prompts) {
    if (hasLine(prompt.id)) skipped++;
    else yield prompt;
  }
  end(skipped);
}
