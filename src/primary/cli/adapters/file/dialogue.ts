import { z } from 'zod';
import { cliError, cliReasons, RelayError } from '../../../../shared/errors.js';
import {
  type Decoder,
  type DecoderEvent,
  type Dialogue,
  quotaWindowNames,
  requestKinds,
} from '../../contract/adapter.js';
import { LineTooLong } from '../common/lines.js';

const text = z.string();
const count = z.number().nonnegative().nullable();
const usage = z.object({
  inputTokens: count,
  outputTokens: count,
  costUsd: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
});
const quota = z.object({ scope: z.enum(['account', 'model']), resetsAt: z.number().nullable() });

const eventShape = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text-delta'), text }),
  z.object({ type: z.literal('input-taken') }),
  z.object({ type: z.literal('turn-end'), text: text.nullable(), model: text.nullable(), usage }),
  z.object({
    type: z.literal('turn-failed'),
    reason: z.enum(cliReasons),
    message: text,
    stderr: text.optional(),
    quota: quota.optional(),
    scope: z.literal('account').optional(),
  }),
  z.object({ type: z.literal('stray') }),
  z.object({ type: z.literal('reply'), text }),
  z.object({ type: z.literal('text-ignored') }),
  z.object({ type: z.literal('request-refused'), request: z.enum(requestKinds) }),
  z.object({
    type: z.literal('quota-report'),
    windows: z.array(
      z.object({
        name: z.enum(quotaWindowNames),
        status: z.enum(['allowed', 'warning', 'rejected']),
        utilization: z.number().nullable(),
        resetsAt: z.number().nullable(),
      }),
    ),
  }),
]);

const inputShape = z.object({
  text,
  rest: z.array(text).optional(),
  stdin: z.enum(['keep-open', 'end']),
});

export const does = z.custom<never>((value) => typeof value === 'function', 'must be a function');

export const dialogueShape = z.object({
  writer: z.looseObject({ write: does }),
  decoder: z.looseObject({ read: does, exit: does, begin: does.optional() }),
  opening: does.optional(),
});

/** A dialogue whose own mistakes are failures of the model CLI, and not of the service. What it says is checked first. */
export function guardedDialogue(name: string, create: () => Dialogue): Dialogue {
  const dialogue = guarded(name, () => checked(dialogueShape, create()));
  const { writer, decoder, opening } = dialogue;
  const guard = <T>(call: () => T): T => guarded(name, call);
  return {
    writer: { write: (turn, number) => guard(() => checked(inputShape, writer.write(turn, number))) },
    decoder: guardedDecoder(decoder, guard),
    ...(opening !== undefined && {
      opening: (folder: string) => guard(() => checked(text, dialogue.opening?.(folder) ?? '')),
    }),
  };
}

function guardedDecoder(decoder: Decoder<DecoderEvent>, guard: <T>(call: () => T) => T): Decoder<DecoderEvent> {
  const events = (from: Iterable<DecoderEvent>) => Array.from(listed(from), (event) => checked(eventShape, event));
  return {
    begin: (turn) => guard(() => void atOnce(decoder.begin?.(turn))),
    get isMidAnswer() {
      return guard(() => decoder.isMidAnswer ?? false);
    },
    get hasBegun() {
      return guard(() => decoder.hasBegun);
    },
    read: (chunk) => guard(() => events(decoder.read(chunk))),
    exit: (exit) => guard(() => events(decoder.exit(exit))),
  };
}

/** `Array.from` makes an empty list of anything else, and an answer would be lost without a word. */
function listed<T>(from: Iterable<T>): Iterable<T> {
  if (typeof atOnce(from)?.[Symbol.iterator] === 'function') return from;
  throw new TypeError('it yields what it must not: must be a list of events, or a generator that is not async');
}

/** Nobody awaits a promise where none belongs, and its rejection would end the service. */
export function atOnce<T>(value: T): T {
  if (!(value instanceof Promise)) return value;
  value.catch(() => {});
  throw new TypeError('it must answer at once, and not with a promise');
}

export function checked<T>(shape: z.ZodType, value: T): T {
  const { error } = shape.safeParse(atOnce(value));
  if (error === undefined) return value;
  const [issue] = error.issues;
  throw new TypeError(`it yields what it must not: ${[...(issue?.path ?? []), issue?.message].join(': ')}`);
}

/** Runs code of the adapter. What went wrong is for the log: it may hold what the model has said. */
export function guarded<T>(name: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof RelayError || error instanceof LineTooLong) throw error;
    const stderr = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw cliError('other', `the adapter ${name} has failed`, { stderr });
  }
}
