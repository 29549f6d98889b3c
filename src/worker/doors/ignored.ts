import { toolRoutes } from '../../shared/api/endpoints.js';
import type { Primary, Reply } from '../http/exchange.js';

/** As many as fit into the 4 KB that proxies have for all headers. */
const maxIgnored = 40;

/** Must come before the response begins. */
export function tellIgnored(res: Reply, fields: readonly string[]): void {
  if (fields.length > 0) res.set('X-Ignored-Parameters', fields.slice(0, maxIgnored).join(', '));
}

/** What can stand in a header, and is long enough for any field that an SDK sends. */
const fieldName = /^[\w.$-]{1,64}$/;

type SentFields = Readonly<Record<string, unknown>>;

/** The fields of a body that mean nothing here, apart from those that say nothing. */
export function ignoredFields(body: SentFields, known: ReadonlySet<string>): string[] {
  const others = Object.entries(body).filter(
    ([name, value]) => !known.has(name) && value !== undefined && value !== null,
  );
  return others.slice(0, maxIgnored).map(([name]) => (fieldName.test(name) ? name : '(odd name)'));
}

/** The same of parts of the body, which have this name: each field once. An empty list says nothing either. */
export function ignoredIn(
  name: string,
  parts: readonly (SentFields | null | undefined)[],
  known: ReadonlySet<string>,
): string[] {
  const found = new Set<string>();
  for (const part of parts) {
    for (const field of ignoredFields(part ?? {}, known))
      if (!isEmptyList(part?.[field])) found.add(`${name}.${field}`);
    if (found.size >= maxIgnored) break;
  }
  return [...found];
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

const ofTools = ['tools', 'functions'];

/** Has it counted, and told to the operator, that a client sends tools in vain. */
export function noteIgnoredTools(primary: Primary, res: Reply, fields: readonly string[]): void {
  const { client } = res.locals;
  const route = toolRoutes.find((each) => each === res.locals.route);
  if (route === undefined || !fields.some((field) => ofTools.includes(field))) return;
  primary.call('toolsIgnored', { client, route }).catch(() => {}); // the answer does not depend on it
}
