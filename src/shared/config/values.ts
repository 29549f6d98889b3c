import { isIP } from 'node:net';
import { z } from 'zod';
import { shellWords } from './clis.js';

/** Strict schemas that parse the text of variables: ambiguous text is a fault. */

export const text = z.string().min(1, 'must not be empty');

export function oneOf<const T extends readonly string[]>(names: T) {
  return z.enum(names, `must be ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`);
}

/** Limit of the system, which would cut a longer path. */
const maxSocketPathBytes = 107;

/** Schema of a path that is the same in any working directory. */
export const absolutePath = text.refine((path) => path.startsWith('/'), 'must be an absolute path');

export const socketPath = text.refine(
  (path) => Buffer.byteLength(path) <= maxSocketPathBytes,
  `must be a path of at most ${maxSocketPathBytes} bytes`,
);

export function integer(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .pipe(z.number().min(min, message).max(max, message));
}

/** Schema of megabytes, which become bytes. */
export function megabytes(min: number, max: number) {
  return integer(min, max).transform((value) => value * 1024 ** 2);
}

export const flag = z
  .enum(['true', 'false', '1', '0'], 'must be true or false')
  .transform((value) => value === 'true' || value === '1');

/** Schema of seconds, optionally with a fraction, which become milliseconds. */
export function seconds(min: number, max: number) {
  const message = `must be a number of seconds from ${min} to ${max}, such as 30 or 0.5`;
  return z
    .string()
    .regex(/^\d{1,12}(\.\d{1,3})?$/, message)
    .transform(Number)
    .pipe(z.number().min(min, message).max(max, message))
    .transform((value) => Math.round(value * 1000));
}

const byteUnits = { '': 1, b: 1, kb: 1024, mb: 1024 ** 2 } as const;

/** Schema of a size such as `1mb`, `512kb` or `4096`, which becomes bytes. */
export function size(min: number, max: number) {
  const message = `must be a size from ${min} to ${max} bytes, such as 512kb or 1mb`;
  return z
    .string()
    .regex(/^\d{1,10}(b|kb|mb)?$/i, message)
    .transform((value) => {
      const unit = value.replace(/\d/g, '').toLowerCase() as keyof typeof byteUnits;
      return Number.parseInt(value, 10) * byteUnits[unit];
    })
    .pipe(z.number().min(min, message).max(max, message));
}

/** Schema of words separated by commas. */
export const list = z.string().transform((value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

function isHost(value: string): boolean {
  const isWritten = isIP(bare(value)) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(value);
  return isWritten && URL.canParse(urlOf(value));
}

/** Normalizes a host like URLs: in lower case, and with one spelling for each address. */
function spelled(value: string): string {
  return bare(new URL(urlOf(value)).hostname) + zoneOf(value);
}

function urlOf(value: string): string {
  const plain = bare(value).replace(/%.*/, '');
  return plain.includes(':') ? `http://[${plain}]` : `http://${plain}`;
}

/** Returns the interface of a link-local address, which a URL cannot contain. */
function zoneOf(value: string): string {
  return /%[^\]]*/.exec(value)?.[0] ?? '';
}

/** Removes the brackets that URLs put around an IPv6 address. */
function bare(value: string): string {
  return value.replace(/^\[(.*:.*)\]$/, '$1');
}

export const host = z
  .string()
  .refine(isHost, 'must be an IP address or a host name, without a port')
  .transform(spelled);

/** Schema of hosts, in the normalized spelling for comparisons. */
export const hosts = list
  .refine((items) => items.length > 0, 'must name a host')
  .refine((items) => items.every(isHost), 'must be IP addresses or host names separated by commas, without ports')
  .transform((items) => items.map(spelled));

function isCidr(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/');
  const version = isIP(address);
  // A prefix of 0 would trust every client; proxy-addr refuses it as well.
  const isPrefix = bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
  return version !== 0 && isPrefix && rest.length === 0;
}

export const cidrs = list.refine((items) => items.every(isCidr), 'must be addresses or CIDR blocks such as 10.0.0.0/8');

export const words = z.string().transform((value, context) => {
  try {
    return shellWords(value);
  } catch (error) {
    context.addIssue(`cannot be split into words: ${(error as Error).message}`);
    return z.NEVER;
  }
});

/** Schema of a command line with at least one word. */
export const command = words.transform(([program, ...args], context): [string, ...string[]] => {
  if (program !== undefined && program !== '') return [program, ...args];
  context.addIssue('must name a program');
  return z.NEVER;
});

/** Pattern of model names. Model names become arguments of a command line, so none may look like a flag. */
export const modelNamePattern = /^[A-Za-z0-9][A-Za-z0-9._:/@[\]-]{0,127}$/;

/** Pattern of the names of accounts of model CLIs. */
export const accountNamePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;

export const modelName = z
  .string('must be a string')
  .regex(modelNamePattern, 'must be a model name: letters, digits and . _ : / @ [ ] -');

/** Maximum number of models that a request may name. */
export const maxChoices = 8;

/** Schema of a model, or of several separated by commas: the next one answers if those before it cannot. */
export const modelChoices = choicesOf(
  /^[A-Za-z0-9][A-Za-z0-9._:/@[\]-]{0,127}(,[A-Za-z0-9][A-Za-z0-9._:/@[\]-]{0,127}){0,7}$/,
);

/** Schema of `modelChoices`, or of an empty text, which some clients send for the default model. */
export const optionalModelChoices = choicesOf(
  /^$|^[A-Za-z0-9][A-Za-z0-9._:/@[\]-]{0,127}(,[A-Za-z0-9][A-Za-z0-9._:/@[\]-]{0,127}){0,7}$/,
);

function choicesOf(pattern: RegExp) {
  const names = `letters, digits and . _ : / @ [ ] -, or up to ${maxChoices} of them separated by commas`;
  return z.string('must be a string').regex(pattern, `must be a model name: ${names}`);
}

export const modelNames = list.refine(
  (items) => items.every((item) => modelNamePattern.test(item)),
  'must be model names separated by commas',
);

export const userNames = list.refine(
  (items) => items.every((item) => /^[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?$/.test(item)),
  'must be names or ids of users separated by commas',
);

export const variableNames = list.refine(
  (items) => items.every((item) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(item)),
  'must be names of environment variables separated by commas',
);

/** Name that stands for a model. */
export interface ModelAlias {
  readonly name: string;
  readonly target: string;
}

/** Name of the alias for all names that mean no model, no CLI and no other alias. */
export const anyOther = '*';
/** Prefix of ids for clients of Anthropic's API that show no other names of models. */
export const anthropicPrefix = 'anthropic/';
/** Name of the default model, which answers requests that name no model. */
export const defaultModelName = 'default';

const form = 'must be pairs such as gpt-4o-mini=haiku,*=default';

/** Schema of names that stand for models, separated by commas. The CLIs check whether the models exist. */
export const modelAliases = z.string().transform((value, context): readonly ModelAlias[] => {
  const aliases: ModelAlias[] = [];
  for (const part of value.split(',').map((item) => item.trim())) {
    if (part === '') continue;
    const [name = '', target = ''] = part.split(/=(.*)/s).map((word) => word.trim());
    const fault = faultOf(name, target, aliases);
    if (fault !== null) {
      context.addIssue(fault);
      return z.NEVER;
    }
    aliases.push({ name, target });
  }
  return aliases;
});

function faultOf(name: string, target: string, before: readonly ModelAlias[]): string | null {
  const isName = name === anyOther || modelNamePattern.test(name);
  if (!isName || !modelNamePattern.test(target)) return form;
  if (name === defaultModelName) return 'must not map default: set MODEL_API_DEFAULT_MODEL';
  return before.some((alias) => alias.name === name) ? `must not map ${name} twice` : null;
}
