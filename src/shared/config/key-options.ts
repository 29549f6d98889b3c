import type { z } from 'zod';
import { nearest } from '../text/nearest.js';
import { type KeyOptions, plainOptions } from './api-keys.js';
import { httpOptions, type KeyOption, keyOptions, type viewFields } from './key-option-table.js';

const table = new Map<string, KeyOption>(Object.entries(keyOptions));

export const optionNames = [...table.keys()];

/** Parses the options of a line, separated by commas. */
export function readOptions(text: string): KeyOptions {
  return { ...plainOptions, ...optionsIn(text.split(',')) };
}

/** Parses options. The result has only the given ones. */
export function optionsIn(texts: readonly string[]): Partial<KeyOptions> {
  const read = texts.map(readOption);
  const twice = read.find(([name], index) => read.findIndex(([other]) => other === name) < index);
  if (twice !== undefined) throw new Error(`the option ${twice[0]} is given twice`);
  return Object.assign({}, ...read.map(([, option]) => option)) as Partial<KeyOptions>;
}

function readOption(text: string): [name: string, option: Partial<KeyOptions>] {
  const [, name = '', value = null] = /^([^=]*)(?:=(.*))?$/.exec(text) ?? [];
  const option = table.get(name);
  if (option === undefined) throw new Error(unknownOption(name));
  try {
    return [name, option.read(value)];
  } catch (error) {
    throw new Error(`the option ${name} ${(error as Error).message}`);
  }
}

/** Texts of options by name; true for an option without a value. */
export type OptionTexts = Readonly<Record<string, string | true>>;

/** Option whose text is wrong. The message does not repeat the text. */
export class OptionFault extends Error {
  override readonly name = 'OptionFault';
  readonly option: string;

  constructor(option: string, message: string) {
    super(message);
    this.option = option;
  }
}

/** Parses options that are named one by one. Throws an OptionFault. */
export function readOptionTexts(texts: OptionTexts): Partial<KeyOptions> {
  const read = Object.entries(texts).map(([name, text]) => {
    const option = table.get(name);
    if (option === undefined) throw new OptionFault(name, 'is no option of a key');
    try {
      return option.read(text === true ? null : text);
    } catch (error) {
      throw new OptionFault(name, (error as Error).message);
    }
  });
  return Object.assign({}, ...read) as Partial<KeyOptions>;
}

/** Returns the texts of all options that are set, without the digest of an old key unless `withDigest`. */
export function optionTexts(options: KeyOptions, withDigest = false): OptionTexts {
  const texts = Array.from(table, ([name, option]) => [name, option.text(options, withDigest)] as const);
  return Object.fromEntries(texts.filter((entry): entry is [string, string | true] => entry[1] !== null));
}

/** Options as clients see them over HTTP. */
type KeyOptionsView = { [N in keyof typeof viewFields]: z.output<(typeof viewFields)[N]> };

export function optionsView(options: KeyOptions): KeyOptionsView {
  return Object.fromEntries(httpOptions.map(([name, option]) => [name, option.viewOf(options)])) as KeyOptionsView;
}

/** Returns the name of an option that allows more than the options of the maker; null if there is none. */
export function exceededOption(options: KeyOptions, maker: KeyOptions): string | null {
  return httpOptions.find(([, option]) => !option.isWithin(options, maker))?.[0] ?? null;
}

/**
 * Describes an unknown option. Shows the name only if it is too short to be a key, or similar to the name of an option.
 */
function unknownOption(name: string): string {
  const close = nearest(name.toLowerCase(), optionNames);
  const isShown = close !== null || /^[A-Za-z_-]{1,15}$/.test(name);
  const shown = isShown ? ` "${name}"` : '';
  return `unknown option${shown}; ${close === null ? `the options are ${optionNames.join(', ')}` : `did you mean ${close}?`}`;
}
