import { z } from 'zod';
import { cliError, RelayError } from '../../../shared/errors.js';
import { type Adapter, type Consult, type Dialect, plainLaunch } from '../adapter.js';
import { checked, dialogueShape, does, guarded, guardedDialogue } from './file-dialogue.js';

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
  .array(z.strictObject({ id: z.string(), name: z.string(), default: z.boolean(), description: z.string().optional() }))
  .nullable();

const moduleShape = z.object({ createAdapter: z.custom<(options: unknown) => unknown>(isFunction) });

/** The adapter that a module makes. Throws with what is wrong with it. What the adapter does later is checked as it does it. */
export function fileAdapter(module: unknown, options: object): Adapter {
  const { data } = moduleShape.safeParse(commonJsOf(module));
  if (data === undefined) throw new Error('must export a function createAdapter');
  const made = orSaid('createAdapter() has failed', () => data.createAdapter(options));
  checkShape(adapterShape, made, 'createAdapter() must return an adapter');
  const adapter = made as Adapter;
  const { name, command, credentialVariable, env, home, models, needsModel = false } = adapter;
  const facts = { name, command, credentialVariable, env, models, needsModel, ...(home !== undefined && { home }) };
  return { ...facts, learn: (consult) => learn(adapter, consult) };
}

/** Tries the parts that can be tried without a process: a mistake shows in the readiness, and not only in a job. */
async function learn(adapter: Adapter, consult: Consult): Promise<Dialect> {
  const { name } = adapter;
  try {
    const dialect = await adapter.learn(consult);
    checkShape(dialectShape, dialect, 'learn() must resolve with a dialect');
    checkShape(planShape, dialect.plan(plainLaunch(null), 'system'), 'plan() must return a plan');
    checkShape(dialogueShape, dialect.dialogue(), 'dialogue() must return a dialogue');
    return guardedDialect(name, dialect);
  } catch (error) {
    if (error instanceof RelayError) throw error;
    throw cliError('other', `the adapter ${name} has failed: ${(error as Error).message}`);
  }
}

function guardedDialect(name: string, dialect: Dialect): Dialect {
  const { version, extras } = dialect;
  return {
    version,
    extras,
    isProvisional: dialect.isProvisional === true,
    plan: (...launch) => guarded(name, () => checked(planShape, dialect.plan(...launch))),
    dialogue: () => guardedDialogue(name, () => dialect.dialogue()),
    check: (consult) => settled(name, checkedVerdict, dialect.check(consult)),
    listModels: (consult) => settled(name, modelsShape, dialect.listModels(consult)),
  };
}

async function settled<T>(name: string, shape: z.ZodType, promised: Promise<T>): Promise<T> {
  const value = await promised;
  return guarded(name, () => checked(shape, value));
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
    throw new Error(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function checkShape(shape: z.ZodType, value: unknown, what: string): void {
  const { error } = shape.safeParse(value);
  if (error === undefined) return;
  const faults = error.issues.map(({ path, message }) => [...path.map(String), message].join(': '));
  throw new Error(`${what}: ${faults.join('; ')}`);
}
