import { nearest } from '../text/nearest.js';
import { type ApiKey, type GroupLine, type PersonLine, wholeService } from './api-keys.js';

/** Lines of a keys file that name groups. */
interface LinesOfGroups {
  readonly keys: readonly Pick<ApiKey, 'name' | 'group'>[];
  readonly personLines: readonly Pick<PersonLine, 'name' | 'group'>[];
  readonly groupLines: readonly Pick<GroupLine, 'name' | 'outer'>[];
}

/** Groups that are named in warnings; the search for a similar name costs time. */
const maxWarnings = 10;

/** Returns warnings about the first ten groups that a line names although they have no line: a name may be mistyped. */
export function groupWarnings({ keys, personLines, groupLines }: LinesOfGroups): string[] {
  const known = new Set(groupLines.map(({ name }) => name));
  known.delete(wholeService);
  const lines = [
    ...keys,
    ...personLines.map(({ name, group }) => ({ name: `sso:${name}`, group })),
    ...groupLines.map(({ name, outer = null }) => ({ name: `@${name}`, group: outer })),
  ];
  const members = new Map<string, string[]>();
  for (const { name, group } of lines) {
    if (group === null || known.has(group)) continue;
    const users = members.get(group) ?? [];
    users.push(name);
    members.set(group, users);
  }
  return [...members].slice(0, maxWarnings).map(([group, [first, ...others]]) => {
    const who = others.length === 0 ? first : `${first} and ${others.length} more`;
    const close = nearest(group, [...known]);
    const advice = close === null ? `add a line that begins with @${group}` : `did you mean ${close}?`;
    return `the group ${group} of ${who} has no budget: ${advice}`;
  });
}

/** Returns the warnings about the lines of the keys file of a service. */
export function keysFileWarnings(lines: LinesOfGroups): string[] {
  return groupWarnings(lines).map((warning) => `MODEL_API_KEYS_FILE: ${warning}`);
}
