import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { WebSearch } from '../../shared/job.js';
import { issueWords } from '../../shared/text/issue-words.js';

/** Matches the types of the search tools of all APIs, with and without a version. */
const searchType = /^web_search(_preview)?(_\d{4}_?\d{2}_?\d{2})?$/;

/** Whether a tool of this type is the web search of a provider, which a model CLI may have too. */
export function isWebSearch(type: string | null | undefined): boolean {
  return searchType.test(type ?? '');
}

const domain = z.string('must be text').min(1, 'must not be empty').max(253, 'must be at most 253 characters');
const domains = z.array(domain, 'must be a list').min(1, 'must not be empty').max(100, 'must be at most 100 domains');

const limits = z.object({
  max_uses: z.int('must be a whole number').min(1, 'must be at least 1').nullish(),
  allowed_domains: domains.nullish(),
  blocked_domains: domains.nullish(),
});

/** Returns the search that a request declares in a field, with its limits in the form of Anthropic's API. */
export function webSearchIn(sent: object, path: string): WebSearch {
  const { data, error } = limits.safeParse(sent, { error: issueWords });
  if (data === undefined)
    throw invalid([path, ...(error.issues[0]?.path ?? [])].join('.'), error.issues[0]?.message ?? '');
  const { max_uses: maxUses, allowed_domains: allowedDomains, blocked_domains: blockedDomains } = data;
  if (allowedDomains && blockedDomains) throw invalid(path, 'must have allowed_domains or blocked_domains, not both');
  return {
    path,
    ...(maxUses != null && { maxUses }),
    ...(allowedDomains && { allowedDomains }),
    ...(blockedDomains && { blockedDomains }),
  };
}
