import { z } from 'zod';
import {
  type Adapter,
  type Consult,
  type DecoderEvent,
  LineTooLong,
  type ProgramVersion,
  plainLaunch,
  quotaWindowNames,
  requestKinds,
} from '../../primary/cli/contract/adapter.js';
import { cliError, cliReasons, RelayError } from '../../shared/errors.js';
import type { CreateAdapter } from './kit.js';

const text = z.string();
const count = z.number().nonnegative().nullable();
const usage = z.object({
  inputTokens: count,
  outputTokens: count,
  costUsd: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
});
const tokenLimit = z.int().positive().nullable();
const quota = z.object({ scope: z.enum(['account', 'model']), resetsAt: z.number().nullable() });

const eventShape = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text-delta'), text }),
  z.object({ type: z.literal('thought-delta'), text }),
  z.object({ type: z.literal('thought-end'), signature: text.optional(), redacted: text.optional() }),
  z.object({ type: z.literal('input-taken') }),
  z.object({
    type: z.literal('turn-end'),
    text: text.nullable(),
    model: text.nullable(),
    usage,
    isCutShort: z.boolean().optional(),
    sizes: z.object({ maxInputTokens: tokenLimit, maxOutputTokens: tokenLimit }).optional(),
    refusal: z.object({ category: text.nullable(), explanation: text.nullable() }).optional(),
  }),
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

const inputShape = z.object({ text, rest: z.array(text).optional(), stdin: z.enum(['keep-open', 'end']) });

const planShape = z.object({
  args: z.array(text),
  files: z.array(z.object({ path: text, text })),
});

const does = z.custom<never>((value) => typeof value === 'function', 'must be a function');

const protocolShape = z.object({
  writer: z.looseObject({ write: does }),
  decoder: z.looseObject({ read: does, exit: does, begin: does.optional(), requested: does.optional() }),
  opening: does.optional(),
});

const modelsShape = z
  .array(
    z.strictObject({
      id: text,
      name: text,
      default: z.boolean(),
      description: text.optional(),
      capabilities: z.strictObject({ images: z.boolean(), effort: z.boolean() }).optional(),
    }),
  )
  .nullable();

type Result = (value: unknown, name: string) => unknown;

/**
 * Checks for the results of synchronous functions of an adapter, by function name. Each returns the value for the
 * service, or throws.
 */
const results: ReadonlyMap<string, Result> = new Map<string, Result>([
  ['plan', (value) => checked(planShape, value)],
  ['protocol', (value, name) => guarded(name, checked(protocolShape, value) as object)],
  ['write', (value) => checked(inputShape, value)],
  ['opening', (value) => checked(text, value ?? '')],
  ['read', events],
  ['requested', events],
  ['exit', events],
]);

/** Checks for the results of functions that consult the program. */
const answers: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ['check', text.nullable()],
  ['listModels', modelsShape],
]);

type Call = (...given: readonly unknown[]) => unknown;

/**
 * Wraps an object of the adapter `name`, and each object in it. Results are checked, and exceptions become failures of
 * the model CLI instead of the service.
 */
function guarded<T extends object>(name: string, target: T): T {
  const parts = new Map<string, object>(); // caches wrapped objects, so that each stays the same
  const get = (_: object, key: string): unknown =>
    parts.get(key) ??
    orFailed(name, () => {
      const member: unknown = Reflect.get(target, key);
      if (key === 'usedSoFar') return checked(usage.nullish(), member); // a new object for each read
      if (typeof member === 'function')
        return guardedCall(name, key, (...given) => Reflect.apply(member, target, given));
      if (typeof member !== 'object' || member === null) return member;
      const part = guarded(name, member);
      parts.set(key, part);
      return part;
    });
  return new Proxy({}, { get }) as T; // a Proxy of the target itself could not replace members of a frozen object
}

function guardedCall(name: string, key: string, call: Call): Call {
  const answer = answers.get(key);
  if (answer !== undefined) return (consult) => settled(name, answer, () => call(guardedConsult(consult as Consult)));
  const resultOf = results.get(key) ?? atOnce;
  return (...given) => orFailed(name, () => resultOf(atOnce(call(...given)), name));
}

/** Runs code of the adapter. The cause of an error is only logged, because it may contain an answer of the model. */
function orFailed<T>(name: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof RelayError || error instanceof LineTooLong) throw error;
    const stderr = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw cliError('other', `the adapter ${name} failed`, { stderr });
  }
}

async function settled(name: string, shape: z.ZodType, ask: () => unknown): Promise<unknown> {
  try {
    return checked(shape, await ask());
  } catch (error) {
    throw failureOf(name, error);
  }
}

/**
 * Returns the error for code that runs before any turn. It contains the adapter's message, because no answer can be in
 * it.
 */
function failureOf(name: string, error: unknown): RelayError {
  return error instanceof RelayError ? error : cliError('other', `the adapter ${name} failed: ${wordsOf(error)}`);
}

/** Returns the message of a thrown value, which may be of any type. */
function wordsOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Guards consultations: an adapter may forget to await one, or `isEnough` may wrongly return a promise. */
function guardedConsult(consult: Consult): Consult {
  return (args, input, isEnough, file) => {
    const isWhole = isEnough && ((stdout: string) => atOnce(isEnough(stdout)));
    const consultation = consult(args, input, isWhole, file);
    consultation.catch(() => {});
    return consultation;
  };
}

/**
 * Checks the events. Other values must throw, because `Array.from` would turn them into an empty list and silently lose
 * the answer.
 */
function events(from: unknown): readonly DecoderEvent[] {
  const list = from as Iterable<DecoderEvent> | null | undefined;
  if (typeof list?.[Symbol.iterator] !== 'function')
    throw new TypeError('it yields an invalid value: must be a list of events, or a generator that is not async');
  return Array.from(list, (event) => checked(eventShape, event));
}

/**
 * Rejects a promise from a synchronous function. The service would not await it, and its rejection would end the
 * service.
 */
function atOnce<T>(value: T): T {
  if (!(value instanceof Promise)) return value;
  value.catch(() => {});
  throw new TypeError('it must return its value, not a promise');
}

function checked<T>(shape: z.ZodType, value: T): T {
  const { error } = shape.safeParse(atOnce(value));
  if (error === undefined) return value;
  const [issue] = error.issues;
  throw new TypeError(`it yields an invalid value: ${[...(issue?.path ?? []), issue?.message].join(': ')}`);
}

type FileAdapter = ReturnType<CreateAdapter>;

const strings = z.record(z.string(), z.string());

const adapterShape = z.object({
  name: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, 'must be up to 32 small letters, digits, - and _'),
  command: z.array(z.string().min(1)).min(1),
  credentialVariable: z.string().nullable(),
  env: strings,
  home: z
    .object({
      variables: strings,
      files: z.array(z.object({ path: z.string(), text: z.string() })),
      links: z.array(z.object({ path: z.string(), to: z.string().startsWith('/') })),
    })
    .optional(),
  models: z.array(z.string().min(1)).min(1).nullable(),
  modelForm: z.instanceof(RegExp, { error: 'must be a regular expression' }).optional(),
  needsModel: z.boolean().optional(),
  reportsCost: z.boolean().optional(),
  learn: does,
});

const versionShape = z.object({
  version: z.string().nullable(),
  extras: z.object({
    image: does.optional(),
    document: does.optional(),
    schema: does.optional(),
    effort: does.optional(),
  }),
  plan: does,
  check: does,
  listModels: does,
  protocol: does,
});

const moduleShape = z.object({
  createAdapter: z.custom<(options: unknown) => unknown>((value) => typeof value === 'function'),
});

/**
 * Returns the adapter that a module creates. Throws an error that describes a faulty adapter. Results of its functions
 * are checked later, at each call.
 */
export function fileAdapter(module: unknown, options: object): Adapter {
  const { data } = moduleShape.safeParse(commonJsOf(module));
  if (data === undefined) throw new Error('must export a function createAdapter');
  const made = orSaid('createAdapter() has failed', () => data.createAdapter(options));
  checkShape(adapterShape, made, 'createAdapter() must return an adapter');
  const adapter = made as FileAdapter;
  const {
    name,
    command,
    credentialVariable,
    env,
    home,
    models,
    modelForm,
    needsModel = false,
    reportsCost = false,
  } = adapter;
  const some = { ...(home !== undefined && { home }), ...(modelForm !== undefined && { modelForm }) };
  const facts = { name, command, credentialVariable, env, models, needsModel, reportsCost, ...some };
  return { ...facts, learn: (consult) => learn(adapter, consult) };
}

/** Tries all parts that need no process, so that a mistake appears in the readiness, not first in a job. */
async function learn(adapter: FileAdapter, consult: Consult): Promise<ProgramVersion> {
  const { name } = adapter;
  try {
    const version = await adapter.learn(guardedConsult(consult));
    checkShape(versionShape, version, 'learn() must resolve with a program version');
    checkShape(planShape, version.plan(plainLaunch(null), 'system'), 'plan() must return a plan');
    const protocol = version.protocol();
    checkShape(protocolShape, protocol, 'protocol() must return a protocol');
    return guarded(name, version) as ProgramVersion;
  } catch (error) {
    throw failureOf(name, error);
  }
}

/** Returns the exports of a CommonJS file. Node names them only if it finds the names in the source text. */
function commonJsOf(module: unknown): unknown {
  const whole = module as { readonly createAdapter?: unknown; readonly default?: unknown } | null;
  return whole?.createAdapter === undefined ? whole?.default : whole;
}

function orSaid<T>(what: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw new Error(`${what}: ${wordsOf(error)}`);
  }
}

function checkShape(shape: z.ZodType, value: unknown, what: string): void {
  if (value instanceof Promise) value.catch(() => {}); // its rejection would end the service
  const { error } = shape.safeParse(value);
  if (error === undefined) return;
  const faults = error.issues.map(({ path, message }) => [...path.map(String), message].join(': '));
  throw new Error(`${what}: ${faults.join('; ')}`);
}
