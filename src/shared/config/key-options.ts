import type { z } from 'zod';
import { nearest } from '../text/nearest.js';
import { type GroupLine, type KeyOptions, plainOptions, wholeService } from './api-keys.js';
import type { ConfiguredFeature } from './feature-variables.js';
import {
  type FeatureKeyOption,
  featureOption,
  type KeyOption,
  keyOptions,
  type viewFields,
} from './key-option-table.js';
import { groupName } from './people.js';
import { modelNamePattern } from './values.js';

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

/** Options that the line of a group cannot set for its members, because they say who somebody is, and for how long. */
const notForMembers: readonly string[] = ['scopes', 'group', 'subclients', 'expires', 'previous'];

/** Largest number of options for one model in a line. */
const maxByModel = 8;

/** Options as clients see them over HTTP. The type lacks the options of features, but the values have them. */
type KeyOptionsView = { [N in keyof typeof viewFields]: z.output<(typeof viewFields)[N]> } & {
  /** Texts of the options for one model. */
  readonly model_limits?: Readonly<Record<string, string>>;
};

/** Name of an option for one model, in its parts. */
interface ModelOption {
  readonly model: string;
  /** Name of the option without the model. */
  readonly option: string;
}

/** Splits the name of an option for one model; null for any other option. The name of a model may contain colons. */
export function modelOptionIn(name: string): ModelOption | null {
  const at = name.lastIndexOf(':');
  return at < 0 ? null : { model: name.slice(0, at), option: name.slice(at + 1) };
}

/** Owns all options of keys. Options of features come after the options of the core. */
export class OptionTable {
  readonly #options: ReadonlyMap<string, KeyOption>;
  /** Names of the options that only lines for people may have. */
  readonly #forPeople: ReadonlySet<string>;
  /** Names of the options that nobody passes on. */
  readonly #forOne: ReadonlySet<string>;
  /** Names of the options that only lines of groups may have. */
  readonly #forGroups: ReadonlySet<string>;
  /** Options that can be set for one model, by name. */
  readonly #byModel: ReadonlyMap<string, FeatureKeyOption>;

  constructor(features: readonly Pick<ConfiguredFeature, 'keyOptions'>[]) {
    const added = features.flatMap((feature) => Object.entries(feature.keyOptions));
    this.#forPeople = new Set(added.flatMap(([name, { isForPeople }]) => (isForPeople ? [name] : [])));
    this.#forOne = new Set(added.flatMap(([name, { isForOne }]) => (isForOne ? [name] : [])));
    this.#forGroups = new Set(added.flatMap(([name, { isForGroups }]) => (isForGroups === 'only' ? [name] : [])));
    this.#byModel = new Map(added.filter(([, { isByModel }]) => isByModel));
    this.#options = new Map([
      ...Object.entries<KeyOption>(keyOptions),
      ...added.map(([name, option]) => [name, featureOption(name, option)] as const),
    ]);
  }

  get entries(): readonly (readonly [name: string, option: KeyOption])[] {
    return [...this.#options];
  }

  /** Parses the options of the line of a group, or with the name `*` of the line of the whole service. */
  readGroupLine(name: string, texts: readonly string[]): GroupLine {
    const memberTexts = texts.filter((text) => /^each(?:=|$)/.test(text));
    const outerTexts = texts.filter((text) => /^in(?:=|$)/.test(text));
    const groupTexts = texts.filter((text) => !memberTexts.includes(text) && !outerTexts.includes(text));
    const { featureOptions = {}, ...rest } = this.readSome(groupTexts);
    const isService = name === wholeService;
    const mayHave = this.entries.flatMap(([each, { isForGroups }]) =>
      isForGroups && !(isService && Object.hasOwn(keyOptions, each)) ? [each] : [],
    );
    const isAllowed = (each: string) => mayHave.includes(this.#baseOf(each));
    const isWrong = texts.length === 0 || groupTexts.some((text) => !isAllowed(optionName(text)));
    if (isWrong || (isService && groupTexts.length < texts.length)) {
      const allowed = [...mayHave, ...(isService ? [] : ['each', 'in'])].map((each) => `${each}=`).join(', ');
      throw new Error(`after the name and a blank there must be one or more of ${allowed}, and no other option`);
    }
    const each = memberTexts.length > 0 && { each: this.#readMembers(memberTexts) };
    checkModelOptions({ featureOptions }, each ? each.each : {});
    return {
      ...{ name, ...rest, featureOptions },
      ...(outerTexts.length > 0 && { outer: readOuter(outerTexts) }),
      ...each,
    };
  }

  /** Returns the options of the line of a group in the form of the keys file. */
  groupTexts({ each = {}, outer, name: _, isClosed: __, ...own }: GroupLine): string[] {
    const textsOf = (options: Partial<KeyOptions>, start: string, sign: string) => {
      const { scopes: ___, ...texts } = this.textsOf({ ...plainOptions, ...options });
      return Object.entries(texts).map(([option, text]) => `${start}${option}${sign}${text}`);
    };
    const outerTexts = outer === undefined ? [] : [`in=${outer}`];
    return [...textsOf(own, '', '='), ...outerTexts, ...textsOf(each, 'each=', ':')];
  }

  /** Whether no group gives an option to its members, and no person to the own keys. */
  isForOne(name: string): boolean {
    return this.#forOne.has(name);
  }

  /** Returns the name of an option that needs the costs of jobs; null if none of these is set. */
  costOptionIn({ featureOptions }: Pick<KeyOptions, 'featureOptions'>): string | null {
    const needsCosts = (name: string) => this.#options.get(this.#baseOf(name))?.needsCosts === true;
    return Object.keys(featureOptions).find(needsCosts) ?? null;
  }

  /** Parses the options of a line, separated by commas. */
  readLine(text: string): KeyOptions {
    const options = { ...plainOptions, ...this.readSome(text.split(',')) };
    const wrong = Object.keys(options.featureOptions).find((name) => this.#forGroups.has(name));
    if (wrong !== undefined) throw new Error(`the option ${wrong} is only for groups`);
    return options;
  }

  /** Parses the options of a line for a key. */
  readKeyLine(text: string): KeyOptions {
    const options = this.readLine(text);
    const wrong = Object.keys(options.featureOptions).find((name) => this.#forPeople.has(name));
    if (wrong !== undefined) throw new Error(`the option ${wrong} is only for people`);
    return options;
  }

  /** Parses options. The result has only the given ones. */
  readSome(texts: readonly string[]): Partial<KeyOptions> {
    const read = texts.map((text) => this.#readOption(text));
    const twice = read.find(([name], index) => read.findIndex(([other]) => other === name) < index);
    if (twice !== undefined) throw new Error(`the option ${twice[0]} is given twice`);
    const options = joined(read.map(([, option]) => option));
    checkModelOptions(options);
    return options;
  }

  /** Parses options that are named one by one. Throws an OptionFault. */
  readTexts(texts: OptionTexts): Partial<KeyOptions> {
    const read = Object.entries(texts).map(([name, text]) => {
      const option = this.#optionOf(name);
      if (option === undefined) throw new OptionFault(name, 'is no option of a key');
      try {
        return option.read(text === true ? null : text);
      } catch (error) {
        throw new OptionFault(name, (error as Error).message);
      }
    });
    const options = joined(read);
    try {
      checkModelOptions(options);
    } catch (error) {
      throw new OptionFault('model_limits', (error as Error).message);
    }
    return options;
  }

  /** Returns the texts of all options that are set, without the digest of an old key unless `withDigest`. */
  textsOf(options: KeyOptions, withDigest = false): OptionTexts {
    const texts = Array.from(this.#options, ([name, option]) => [name, option.text(options, withDigest)] as const);
    const set = texts.filter((entry): entry is [string, string | true] => entry[1] !== null);
    return { ...Object.fromEntries(set), ...modelTextsOf(options) };
  }

  viewOf(options: KeyOptions): KeyOptionsView {
    const views = this.entries.flatMap(([name, { http }]) => (http === null ? [] : [[name, http.viewOf(options)]]));
    const byModel = modelTextsOf(options);
    const limits = Object.keys(byModel).length > 0 && { model_limits: byModel };
    return { ...Object.fromEntries(views), ...limits } as KeyOptionsView;
  }

  /** Returns the name of an option that allows more than the options of the maker; null if there is none. */
  exceeded(options: KeyOptions, maker: KeyOptions): string | null {
    return this.entries.find(([, { http }]) => http?.isWithin(options, maker) === false)?.[0] ?? null;
  }

  /** Returns the name of an option without its model. */
  #baseOf(name: string): string {
    const parts = this.#options.has(name) ? null : modelOptionIn(name);
    return parts !== null && this.#byModel.has(parts.option) ? parts.option : name;
  }

  #optionOf(name: string): KeyOption | undefined {
    const known = this.#options.get(name);
    if (known !== undefined) return known;
    const { model = '', option = '' } = modelOptionIn(name) ?? {};
    const general = modelNamePattern.test(model) ? this.#byModel.get(option) : undefined;
    return general && featureOption(name, general);
  }

  /** Returns an option of members in the form of the other options: `opus:cost:5/day` becomes `opus:cost=5/day`. */
  #memberText(text: string): string {
    if (text.includes('=')) return text;
    const at = text.lastIndexOf(':');
    const name = text.slice(0, Math.max(at, 0));
    const isOfModel = !this.#options.has(optionName(text.replace(':', '='))) && this.#baseOf(name) !== name;
    return isOfModel ? `${name}=${text.slice(at + 1)}` : text.replace(':', '=');
  }

  /** Returns options in which those of `bound` replace each one that allows more. */
  bounded(options: KeyOptions, bound: Partial<KeyOptions>): KeyOptions {
    const max = { ...plainOptions, ...bound };
    const replaced = Object.entries(this.textsOf(max)).flatMap(([name, text]) => {
      const option = this.#optionOf(name);
      const isWithin = option?.http?.isWithin(options, max) ?? true;
      return isWithin || option === undefined ? [] : [option.read(text === true ? null : text)];
    });
    const { featureOptions, ...own } = joined(replaced);
    return { ...options, ...own, featureOptions: { ...options.featureOptions, ...featureOptions } };
  }

  /** Parses options of members, such as `each=tokens:5/day`. */
  #readMembers(texts: readonly string[]): Partial<KeyOptions> {
    const options = texts.map((text) => this.#memberText(text.replace(/^each=?/, '')));
    const wrong = options
      .map(optionName)
      .find((name) => notForMembers.includes(name) || this.#forOne.has(name) || this.#forGroups.has(name));
    if (wrong !== undefined) throw new Error(`the option each cannot set ${wrong}`);
    try {
      return this.readSome(options);
    } catch (error) {
      const { message } = error as Error;
      throw new Error(`each= must have an option of each member, such as each=tokens:200000/week: ${message}`);
    }
  }

  #readOption(text: string): [name: string, option: Partial<KeyOptions>] {
    const [, name = '', value = null] = /^([^=]*)(?:=(.*))?$/.exec(text) ?? [];
    const option = this.#optionOf(name);
    if (option === undefined) throw new Error(this.#unknownOption(name));
    try {
      return [name, option.read(value)];
    } catch (error) {
      throw new Error(`the option ${name} ${(error as Error).message}`);
    }
  }

  /**
   * Describes an unknown option. Shows the name only if it is too short to be a key, or similar to the name of an option.
   */
  #unknownOption(name: string): string {
    const names = [...this.#options.keys()];
    const close = nearest(name.toLowerCase(), names);
    const isShown = close !== null || /^[A-Za-z_-]{1,15}$/.test(name);
    const shown = isShown ? ` "${name}"` : '';
    return `unknown option${shown}; ${close === null ? `the options are ${names.join(', ')}` : `did you mean ${close}?`}`;
  }
}

/** Parses the name of the group around a group. */
function readOuter([text = '', second]: readonly string[]): string {
  if (second !== undefined) throw new Error('the option in is given twice');
  const name = text.slice('in='.length);
  if (groupName.test(name) && name !== wholeService) return name;
  throw new Error('the option in must be the name of a group');
}

function optionName(text: string): string {
  return text.split('=', 1)[0] ?? '';
}

/** Returns the texts of the options for one model. */
function modelTextsOf({ featureOptions }: Pick<KeyOptions, 'featureOptions'>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(featureOptions).filter(([name]) => modelOptionIn(name) !== null));
}

/** Throws if a line with these options has too many for one model. */
function checkModelOptions(...parts: readonly Partial<KeyOptions>[]): void {
  const names = parts.flatMap(({ featureOptions = {} }) => Object.keys(modelTextsOf({ featureOptions })));
  if (names.length > maxByModel) throw new Error(`there must be at most ${maxByModel} options for one model`);
}

/** Merges parsed options. `featureOptions` are merged name by name; later ones do not replace the whole. */
function joined(parts: readonly Partial<KeyOptions>[]): Partial<KeyOptions> {
  const added = parts.flatMap(({ featureOptions }) => Object.entries(featureOptions ?? {}));
  return Object.assign({}, ...parts, added.length > 0 && { featureOptions: Object.fromEntries(added) });
}
