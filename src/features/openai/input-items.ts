import type { Request } from 'express';
import { limitQuery } from '../../shared/api/conversations.js';
import { invalid } from '../../shared/errors.js';
import { type Attachment, isDocument, type Message } from '../../shared/job.js';
import type { Reply } from '../../worker/http/exchange.js';
import { sendBody, untilGone } from '../../worker/http/responses.js';
import { AnswerText } from '../../worker/jobs/answer-text.js';
import { setIgnoredQuery } from '../../worker/jobs/job-request.js';
import type { JobParts } from '../../worker/jobs/run-job.js';
import { textPart } from './responses-items.js';
import { responseCalls } from './shared.js';

interface Item extends Readonly<Record<string, unknown>> {
  readonly id: string;
}

const defaultLimit = '20';
const knownQuery: ReadonlySet<string> = new Set(['after', 'limit', 'order']);

/**
 * Sends one page of the input of a stored response, including the earlier conversation. A long page is written into a file
 * first: a slow client must not occupy memory, or the primary.
 */
export async function sendInputItems(
  { primary, spill }: Pick<JobParts, 'primary' | 'spill'>,
  req: Request,
  res: Reply,
  id: string,
): Promise<void> {
  setIgnoredQuery(req, res, knownQuery);
  const [isReversed, limit] = [isReversedIn(req), limitIn(req)];
  const after = afterIn(req, id);
  const query = { id, client: res.locals.client, isReversed, from: after?.index ?? null };
  using caller = untilGone(res);
  const page = { count: 0, first_id: null as string | null, last_id: null as string | null, has_more: false };
  await using text = new AnswerText(spill);
  await text.addJson('{"object":"list","data":[');
  for await (const { index, message } of responseCalls(primary).stream('responseInput', query, caller.signal)) {
    const items = itemsOf(message, (kind, place) => `${kind}_${id}_${index}_${place}`);
    const ordered = isReversed ? items.toReversed() : items;
    const remaining = ordered.slice(index === after?.index ? ordered.findIndex((item) => item.id === after.id) + 1 : 0);
    page.has_more = page.count + remaining.length > limit;
    for (const item of remaining.slice(0, limit - page.count)) {
      await text.addJson((page.count++ === 0 ? '' : ',') + JSON.stringify(item));
      page.first_id ??= item.id;
      page.last_id = item.id;
    }
    if (page.has_more) break;
  }
  const { count: _, ...pageFields } = page;
  await text.addJson(`],${JSON.stringify(pageFields).slice(1)}`);
  await sendBody(res, text, caller.signal);
}

function isReversedIn({ query: { order = 'desc' } }: Request): boolean {
  if (order !== 'asc' && order !== 'desc') throw invalid('order', 'must be asc or desc');
  return order === 'desc';
}

function limitIn({ query }: Request): number {
  const parsed = limitQuery.safeParse(query.limit ?? defaultLimit);
  if (!parsed.success) throw invalid('limit', 'must be a whole number from 1 to 100');
  return Number(parsed.data);
}

/** Returns the item after which the page begins; null for the first page. Throws `validation_error`. */
function afterIn({ query }: Request, response: string): { readonly id: string; readonly index: number } | null {
  if (query.after === undefined) return null;
  const id = String(query.after);
  const [, sent, index] = /^(?:msg|fc|fco)_(.+)_(\d{1,9})_\d{1,9}$/.exec(id) ?? [];
  if (sent !== response) throw invalid('after', 'must be the id of an item of this response');
  return { id, index: Number(index) };
}

type ItemIds = (kind: 'msg' | 'fc' | 'fco', place: number) => string;

/** Returns the items of a message: results, then its text, then its calls. */
function itemsOf({ role, text, images = [], results = [], calls = [] }: Message, idOf: ItemIds): Item[] {
  const status = 'completed';
  const hasMessage = text !== '' || images.length > 0 || results.length + calls.length === 0;
  const resultItems = results.map(({ id, text: output, images: shown = [] }) => ({
    type: 'function_call_output',
    call_id: id,
    output: shown.length === 0 ? output : [inputText(output), ...shown.map(inputAttachment)],
  }));
  const content =
    role === 'assistant'
      ? [textPart(text)]
      : [...(text === '' ? [] : [inputText(text)]), ...images.map(inputAttachment)];
  const callItems = calls.map(({ id, name, input }) => ({
    type: 'function_call',
    call_id: id,
    name,
    arguments: input,
  }));
  return [
    ...resultItems.map((item, place) => ({ id: idOf('fco', place), ...item, status })),
    ...(hasMessage ? [{ id: idOf('msg', 0), type: 'message', role, content, status }] : []),
    ...callItems.map((item, place) => ({ id: idOf('fc', place), ...item, status })),
  ];
}

function inputText(text: string): object {
  return { type: 'input_text', text };
}

function inputAttachment(attachment: Attachment): object {
  const { mediaType, data } = attachment;
  const url = `data:${mediaType};base64,${data}`;
  if (isDocument(attachment)) return { type: 'input_file', filename: attachment.name, file_data: url };
  return { type: 'input_image', image_url: url, detail: 'auto' };
}
