import { z } from 'zod';
import { type Adapter, type Consult, type ProgramVersion, plainLaunch } from '../../contract/adapter.js';
import { does, failureOf, guarded, guardedConsult, planShape, protocolShape, wordsOf } from './guard.js';
import type { CreateAdapter, Dialect } from './kit.js';

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
  learn: does,
});

const versionParts = {
  version: z.string().nullable(),
  extras: z.object({ image: does.optional(), schema: does.optional(), effort: does.optional() }),
  plan: does,
  check: does,
  listModels: does,
};
const versionShape = z.object({ ...versionParts, protocol: does });
const formerShape = z.object({ ...versionParts, dialogue: does });

const moduleShape = z.object({
  createAdapter: z.custom<(options: unknown) => unknown>((value) => typeof value === 'function'),
});

/** The adapter that a module makes. Throws with what is wrong with it. What the adapter does later is checked as it does it. */
export function fileAdapter(module: unknown, options: object): Adapter {
  const { data } = moduleShape.safeParse(commonJsOf(module));
  if (data === undefined) throw new Error('must export a function createAdapter');
  const made = orSaid('createAdapter() has failed', () => data.createAdapter(options));
  checkShape(adapterShape, made, 'createAdapter() must return an adapter');
  const adapter = made as FileAdapter;
  const { name, command, credentialVariable, env, home, models, modelForm, needsModel = false } = adapter;
  const some = { ...(home !== undefined && { home }), ...(modelForm !== undefined && { modelForm }) };
  const facts = { name, command, credentialVariable, env, models, needsModel, ...some };
  return { ...facts, learn: (consult) => learn(adapter, consult) };
}

/** Tries the parts that can be tried without a process: a mistake shows in the readiness, and not only in a job. */
async function learn(adapter: FileAdapter, consult: Consult): Promise<ProgramVersion> {
  const { name } = adapter;
  try {
    const version = await adapter.learn(guardedConsult(consult));
    const isFormer = hasFormerName(version);
    checkShape(isFormer ? formerShape : versionShape, version, 'learn() must resolve with a program version');
    checkShape(planShape, version.plan(plainLaunch(null), 'system'), 'plan() must return a plan');
    const protocol = isFormer ? version.dialogue() : version.protocol();
    checkShape(protocolShape, protocol, `${isFormer ? 'dialogue' : 'protocol'}() must return a protocol`);
    return guarded(name, version) as ProgramVersion;
  } catch (error) {
    throw failureOf(name, error);
  }
}

function hasFormerName(version: ProgramVersion | Dialect): version is Dialect {
  return (version as Partial<Dialect> | null)?.dialogue !== undefined && !('protocol' in version);
}

/** Node shows the exports of a CommonJS file by their names only where it finds these in its text. */
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
