import { z } from 'zod';
import { accountNamePattern, maxChoices, modelNamePattern } from '../../shared/config/values.js';

/** Model of a fallback rule. `account`: the only account that may serve it; null for any account of the client. */
export interface FallbackModel {
  readonly name: string;
  readonly account: string | null;
}

/** Model, and its replacements in order. */
export interface FallbackRule {
  readonly model: string;
  readonly fallbacks: readonly FallbackModel[];
}

const form = 'must be models in order, such as claude/opus>claude@spare/opus>claude/sonnet';

/** Schema of rules separated by commas. The CLIs check whether the models exist. */
export const fallbackRules = z.string().transform((value, context): readonly FallbackRule[] => {
  const rules: FallbackRule[] = [];
  for (const part of value.split(',')) {
    if (part.trim() === '') continue;
    const rule = readRule(part);
    const isSecond = rules.some(({ model }) => model === rule?.model);
    if (rule === null || isSecond) {
      context.addIssue(rule === null ? form : `must not have two rules for ${rule.model}`);
      return z.NEVER;
    }
    rules.push(rule);
  }
  return rules;
});

function readRule(text: string): FallbackRule | null {
  const models = text.split('>').map((model) => readModel(model.trim()));
  const [first, ...fallbacks] = models.filter((model) => model !== null);
  const isWhole = fallbacks.length === models.length - 1 && models.length > 1 && models.length <= maxChoices;
  return isWhole && first?.account === null ? { model: first.name, fallbacks } : null;
}

/** Parses a model such as `claude/opus` or, with an account, `claude@spare/opus`. */
function readModel(text: string): FallbackModel | null {
  const [, cli = '', account = null, model = ''] = /^([^@/]+)@([^@/]+)(\/.+)?$/.exec(text) ?? ['', text];
  const name = cli + model;
  const isAccount = account === null || accountNamePattern.test(account);
  return isAccount && modelNamePattern.test(name) ? { name, account } : null;
}
