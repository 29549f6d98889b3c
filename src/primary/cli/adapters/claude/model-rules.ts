import { z } from 'zod';
import type { Effort } from '../../contract/adapter.js';
import { allEfforts, type ModelRules, type ThinkingType } from '../../contract/model-rules.js';

/**
 * Rules of the Messages API for each family of models, from the migration guides of the vendor. A model that is newer
 * than the table gets the strictest rules, which every model accepts.
 */

interface FamilyRules {
  readonly thinking: readonly ThinkingType[];
  readonly acceptsDemand: boolean;
  readonly acceptsSampling: boolean;
  /** Efforts that claude sends for the model. It replaces any other, or omits it. */
  readonly efforts: readonly Effort[];
}

const adaptive = { thinking: ['adaptive', 'disabled'], acceptsDemand: true } as const;

/** Families by the version from which they have these rules, newest first. */
const families: readonly { readonly from: number; readonly rules: FamilyRules }[] = [
  { from: 5.5, rules: { thinking: ['adaptive'], acceptsDemand: false, acceptsSampling: false, efforts: allEfforts } },
  { from: 4.7, rules: { ...adaptive, acceptsSampling: false, efforts: allEfforts } },
  { from: 4.6, rules: { ...adaptive, acceptsSampling: true, efforts: ['low', 'medium', 'high', 'max'] } },
  { from: 3.7, rules: { thinking: ['enabled', 'disabled'], acceptsDemand: true, acceptsSampling: true, efforts: [] } },
  { from: 0, rules: { thinking: ['disabled'], acceptsDemand: true, acceptsSampling: true, efforts: [] } },
];

/** Exceptions from the rules of a family, by kind and version. */
const exceptions: readonly { readonly kind: string; readonly version: number; readonly rules: Partial<FamilyRules> }[] =
  [
    { kind: 'sonnet', version: 5.5, rules: { thinking: ['adaptive', 'between_tools'] } },
    { kind: 'haiku', version: 5.5, rules: { acceptsDemand: true } },
    { kind: 'opus', version: 4.5, rules: { efforts: ['low', 'medium', 'high'] } },
  ];

/** Kinds whose version 5 has the rules of version 5.5. */
const strictKinds = /^(?!opus|sonnet|haiku)/;

/** Rules if the model is unknown: the API decides. */
const unknownRules = { thinking: null, acceptsDemand: true, acceptsSampling: true } as const;

/** First version that writes its words between calls as thoughts. claude asks only for these if no client wants more. */
const silentBetweenCalls = 5.5;

/** First version with the newer tokenizer, which makes about 30 % more tokens of the same text. */
const newerTokenizer = 4.7;
/** More than the average, because a client that counts too few tokens compacts its conversation too late. */
const newerTokens = 1.35;

export interface ClaudeModelRules extends ModelRules {
  readonly acceptsSampling: boolean;
  /** Whether thoughts need a budget, and the last message of the model in a tool round must then begin with one. */
  readonly thinksByBudget: boolean;
}

const listed = z.object({
  value: z.string(),
  /** Full name of the model behind a short name. */
  resolvedModel: z.string().optional().catch(undefined),
  displayName: z.string(),
  description: z.string().optional(),
  supportsEffort: z.boolean().optional().catch(undefined),
  supportedEffortLevels: z.array(z.string()).optional().catch(undefined),
});
export type ListedModel = z.infer<typeof listed>;

const modelList = z.object({
  type: z.literal('control_response'),
  response: z.object({ response: z.object({ models: z.array(listed) }) }),
});

/** Returns the models in the CLI's answer to `initialize`; null if no line has any. */
export function listedModels(lines: readonly unknown[]): readonly ListedModel[] | null {
  for (const line of lines) {
    const { data } = modelList.safeParse(line);
    if (data !== undefined) return data.response.response.models;
  }
  return null;
}

/** The CLI's name for its default model. */
const defaultName = 'default';

/** Knows which model stands behind each name, and what the API accepts for it. */
export class ClaudeModels {
  /** Models behind the short names of the CLI. */
  readonly #resolved = new Map<string, string>();
  /** Efforts by the name of the model. */
  readonly #efforts = new Map<string, readonly Effort[]>();

  /** Records the list of the CLI. */
  noteList(models: readonly ListedModel[]): void {
    // If the CLI sends `supportsEffort` for any model, a model without it has no efforts; if for none, efforts are
    // unknown.
    const listsEffort = models.some(({ supportsEffort }) => supportsEffort === true);
    for (const { value, resolvedModel, supportsEffort, supportedEffortLevels: levels } of models) {
      if (resolvedModel === undefined) continue; // an older version
      this.#resolved.set(value, resolvedModel);
      if (levels === undefined && (supportsEffort === true || !listsEffort)) continue;
      this.#efforts.set(
        withoutContext(resolvedModel),
        allEfforts.filter((effort) => levels?.includes(effort)),
      );
    }
  }

  /** Records the model that has answered for a short name of the CLI. */
  noteAnswer(requested: string | null, model: string): void {
    const name = requested ?? defaultName;
    if (requested === null || this.#resolved.has(name)) this.#resolved.set(name, model);
  }

  rulesOf(requested: string | null): ClaudeModelRules {
    const model = withoutContext(this.#resolved.get(requested ?? defaultName) ?? requested ?? defaultName);
    const { version, rules } = familyOf(model) ?? { version: 0, rules: unknownRules };
    const levels = this.#efforts.get(model);
    return {
      ...rules,
      thinksByBudget: rules.thinking?.includes('enabled') === true,
      tokenFactor: version >= newerTokenizer ? newerTokens : 1,
      ...(version >= silentBetweenCalls && { thinksProgress: true }),
      ...(levels !== undefined && { efforts: levels }),
    };
  }
}

/** Returns the name without the mark for a long context, `[1m]`. */
function withoutContext(model: string): string {
  return model.replace(/\[\w+\]$/, '');
}

/** Names such as `claude-opus-5-5`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, and the older `claude-3-7-sonnet-…`. */
const newerForm = /claude-([a-z]+)-(\d+)(?:[-.](\d{1,2}))?(?!\d)/;
const olderForm = /claude-(\d+)(?:[-.](\d{1,2}))?(?!\d)(?:-([a-z]+))?/;

function familyOf(model: string): { readonly version: number; readonly rules: FamilyRules } | null {
  const [, kind, major, minor = '0'] = newerForm.exec(model) ?? inNewerOrder(olderForm.exec(model));
  if (kind === undefined || major === undefined) return null;
  const named = Number(major) + Number(minor) / 10;
  const version = named >= 5 && strictKinds.test(kind) ? Math.max(5.5, named) : named;
  const rules = families.find(({ from }) => version >= from)?.rules;
  const exception = exceptions.find((each) => each.kind === kind && each.version === version);
  return rules === undefined ? null : { version, rules: { ...rules, ...exception?.rules } };
}

function inNewerOrder(match: RegExpExecArray | null): readonly (string | undefined)[] {
  const [all, major, minor, kind = 'opus'] = match ?? [];
  return major === undefined ? [] : [all, kind, major, minor];
}
