import { z } from 'zod';
import { cliError, RelayError } from '../../../../shared/errors.js';
import {
  type Adapter,
  type Consult,
  type Dialect,
  type Effort,
  type Extras,
  type Image,
  plainLaunch,
} from '../../contract/adapter.js';
import { atOnce, checked, dialogueShape, does, guarded, guardedDialogue } from './dialogue.js';

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
  learn: does,
});

const dialectShape = z.object({
  version: z.string().nullable(),
  extras: z.object({ image: does.optional(), schema: does.optional(), effort: does.optional() }),
  plan: does,
  dialogue: does,
  check: does,
  listModels: does,
});

const planShape = z.object({
  args: z.array(z.string()),
  files: z.array(z.object({ path: z.string(), text: z.string() })),
});

const checkedVerdict = z.string().nullable();

const modelsShape = z
  .array(
    z.strictObject({
      id: z.string(),
      name: z.string(),
      default: z.boolean(),
      description: z.string().optional(),
      capabilities: z.strictObject({ images: z.boolean(), effort: z.boolean() }).optional(),
    }),
  )
  .nullable();

const moduleShape = z.object({ createAdapter: z.custom<(options: unknown) => unknown>(isFunction) });

/** The adapter that a module makes. Throws with what is wrong with it. What the adapter does later is checked as it does it. */
export function fileAdapter(module: unknown, options: object): Adapter {
  const { data } = moduleShape.safeParse(commonJsOf(module));
  if (data === undefined) throw new Error('must export a function createAdapter');
  const made = orSaid('createAdapter() has failed', () => data.createAdapter(options));
  checkShape(adapterShape, made, 'createAdapter() must return an adapter');
  const adapter = made as Adapter;
  const { name, command, credentialVariable, env, home, models, modelForm, needsModel = false } = adapter;
  const some = { ...(home !== undefined && { home }), ...(modelForm !== undefined && { modelForm }) };
  const facts = { name, command, credentialVariable, env, models, needsModel, ...some };
  return { ...facts, learn: (consult) => learn(adapter, consult) };
}

/** Tries the parts that can be tried without a process: a mistake shows in the readiness, and not only in a job. */
async function learn(adapter: Adapter, consult: Consult): Promise<Dialect> {
  const { name } = adapter;
  try {
    const dialect = await adapter.learn(guardedConsult(consult));
    checkShape(dialectShape, dialect, 'learn() must resolve with a dialect');
    checkShape(planShape, dialect.plan(plainLaunch(null), 'system'), 'plan() must return a plan');
    checkShape(dialogueShape, dialect.dialogue(), 'dialogue() must return a dialogue');
    return guardedDialect(name, dialect);
  } catch (error) {
    throw failureOf(name, error);
  }
}

/** What the adapter does before any turn is told in its own words: no model has said anything yet. */
function failureOf(name: string, error: unknown): RelayError {
  return error instanceof RelayError ? error : cliError('other', `the adapter ${name} has failed: ${wordsOf(error)}`);
}

/** An adapter may forget to await an answer, or that what decides whether it is enough may be no promise. */
function guardedConsult(consult: Consult): Consult {
  return (args, input, isEnough, file) => {
    const isWhole = isEnough && ((stdout: string) => atOnce(isEnough(stdout)));
    const consultation = consult(args, input, isWhole, file);
    consultation.catch(() => {});
    return consultation;
  };
}

function guardedDialect(name: string, dialect: Dialect): Dialect {
  const { version } = dialect;
  return {
    version,
    extras: guardedExtras(name, dialect.extras),
    isProvisional: dialect.isProvisional === true,
    plan: (...launch) => guarded(name, () => checked(planShape, dialect.plan(...launch))),
    dialogue: () => guardedDialogue(name, () => dialect.dialogue()),
    check: (consult) => settled(name, checkedVerdict, () => dialect.check(guardedConsult(consult))),
    listModels: (consult) => settled(name, modelsShape, () => dialect.listModels(guardedConsult(consult))),
  };
}

function guardedExtras(name: string, extras: Extras): Extras {
  const guard = (call: () => unknown) => guarded(name, () => atOnce(call()));
  return {
    ...(extras.image !== undefined && { image: (image: Image) => guard(() => extras.image?.(image)) }),
    ...(extras.schema !== undefined && { schema: (schema: string) => guard(() => extras.schema?.(schema)) }),
    ...(extras.effort !== undefined && { effort: (effort: Effort) => guard(() => extras.effort?.(effort)) }),
  };
}

async function settled<T>(name: string, shape: z.ZodType, ask: () => Promise<T>): Promise<T> {
  try {
    return checked(shape, await ask());
  } catch (error) {
    throw failureOf(name, error);
  }
}

/** Node shows the exports of a CommonJS file by their names only where it finds these in its text. */
function commonJsOf(module: unknown): unknown {
  const whole = module as { readonly createAdapter?: unknown; readonly default?: unknown } | null;
  return whole?.createAdapter === undefined ? whole?.default : whole;
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

function orSaid<T>(what: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw new Error(`${what}: ${wordsOf(error)}`);
  }
}

/** Anything can be thrown. */
function wordsOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function checkShape(shape: z.ZodType, value: unknown, what: string): void {
  if (value instanceof Promise) value.catch(() => {}); // its rejection would end the service
  const { error } = shape.safeParse(value);
  if (error === undefined) return;
  const faults = error.issues.map(({ path, message }) => [...path.map(String), message].join(': '));
  throw new Error(`${what}: ${faults.join('; ')}`);
}
