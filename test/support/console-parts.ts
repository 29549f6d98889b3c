declare global {
  /** Set by environment.ts. */
  var importConsole: (name: string) => Promise<unknown>;
}

/** A node as Preact holds it. */
interface PreactNode {
  readonly type: string | ((props: object) => unknown);
  readonly props: Readonly<Record<string, unknown>>;
}

/** A module of the console, by its path there. */
export async function consolePart<T>(name: string): Promise<T> {
  return (await globalThis.importConsole(name)) as T;
}

/** An element, with the components in it drawn: `['p', {}, 'text', ['b', {}, 'bold']]`. */
export type DrawnElement = readonly [tag: string, attributes: Readonly<Record<string, unknown>>, ...DrawnNode[]];
export type DrawnNode = string | DrawnElement;

/** What nodes come to, without a browser. Components that need one are shown by `stand`. */
export function drawn(node: unknown, stand: Readonly<Record<string, string>> = {}): DrawnNode[] {
  if (Array.isArray(node)) return joined(node.flatMap((child) => drawn(child, stand)));
  if (node === null || node === undefined || typeof node === 'boolean') return [];
  if (typeof node !== 'object') return [String(node)];
  const { type, props } = node as PreactNode;
  const { children, ...attributes } = props;
  const set = Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
  const tag = typeof type === 'string' ? type : (stand[type.name] ?? type.name);
  return [[tag, set, ...drawn(children, stand)]];
}

/** Texts that stand side by side are one. */
function joined(nodes: readonly DrawnNode[]): DrawnNode[] {
  const all: DrawnNode[] = [];
  for (const node of nodes) {
    const last = all.at(-1);
    if (typeof last === 'string' && typeof node === 'string') all[all.length - 1] = last + node;
    else all.push(node);
  }
  return all;
}
