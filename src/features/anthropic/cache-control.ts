import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { CacheBreakpoint } from '../../shared/job.js';
import { messageOf } from '../../worker/jobs/message-parts.js';
import type { Block, MessagesRequest } from './messages-request.js';

/** Breakpoints of the prompt cache (`cache_control`) in requests of Anthropic's API. */

const cacheControl = z.looseObject(
  { ttl: z.enum(['5m', '1h'], 'must be 5m or 1h').nullish() },
  'must be an object with a type',
);

interface RequestedCache {
  readonly breakpoint: CacheBreakpoint;
  /** Names of the fields that set breakpoints, as a list for a header. */
  readonly field: string;
}

type Marked = Readonly<Record<string, unknown>>;

/**
 * Returns the breakpoint that the model CLI gets; undefined if the client sets none. A CLI sets breakpoints after the
 * tools, the system text and the last message itself, so only one inside the last message has a place of its own. The
 * longest time to live applies to all. Throws `validation_error`.
 */
export function cacheIn({ tools, system, messages, ...body }: MessagesRequest): RequestedCache | undefined {
  const sent = [
    ...marksIn('', [body]),
    ...marksIn('tools', tools ?? []),
    ...marksIn('system', Array.isArray(system) ? system : []),
    ...messages.flatMap(({ content }, at) =>
      Array.isArray(content) ? marksIn(`messages.${at}.content`, content) : [],
    ),
  ];
  if (sent.length === 0) return undefined;
  const ttl = sent.some((mark) => mark.ttl === '1h') ? '1h' : '5m';
  const fields = sent.map(({ path }) => `${path.replace(/\.\d+/g, '')}${path === '' ? '' : '.'}cache_control`);
  return { breakpoint: { ttl, restLength: restLengthOf(messages.at(-1)) }, field: [...new Set(fields)].join(', ') };
}

function marksIn(path: string, parts: readonly Marked[]) {
  return parts.flatMap(({ cache_control: sent }, index) => {
    if (sent == null) return [];
    const { data, error } = cacheControl.safeParse(sent);
    const [issue] = error?.issues ?? [];
    const field = [...(path === '' ? [] : [path, index]), 'cache_control', ...(issue?.path ?? [])].join('.');
    if (issue !== undefined) throw invalid(field, issue.message);
    return [{ path, ttl: data?.ttl }];
  });
}

/** Returns the length of a message's text after the last block with a breakpoint; 0 if no block has one. */
function restLengthOf(message: MessagesRequest['messages'][number] | undefined): number {
  const blocks = message?.role === 'user' && Array.isArray(message.content) ? message.content : [];
  const last = blocks.findLastIndex(({ cache_control: sent }) => sent != null);
  return last < 0 ? 0 : lengthOf(blocks.slice(last)) - lengthOf(blocks.slice(last, last + 1));
}

/** Returns the length of the joined texts, which depends on the order of texts and other blocks. */
function lengthOf(blocks: readonly Block[]): number {
  const parts = blocks.map(({ type, text }) =>
    type === 'text' && typeof text === 'string'
      ? ({ type, text } as const)
      : ({ type: 'image', mediaType: 'image/png', data: '' } as const),
  );
  return messageOf('user', parts).text.length;
}
