declare global {
  /** Set by environment.ts. */
  var importConsole: (name: string) => Promise<unknown>;
}

/** Preact's representation of a node. */
interface PreactNode {
  readonly type: string | ((props: object) => unknown);
  readonly props: Readonly<Record<string, unknown>>;
}

/** Imports a module of the console by its path there. */
export async function consolePart<T>(name: string): Promise<T> {
  return (await globalThis.importConsole(name)) as T;
}

/** Imports several modules of the console, and returns all their exports. */
export async function consoleParts<T>(...names: readonly string[]): Promise<T> {
  const parts = await Promise.all(names.map((name) => consolePart<object>(name)));
  return Object.assign({}, ...parts) as T;
}

/** Element with its components rendered: `['p', {}, 'text', ['b', {}, 'bold']]`. */
type DrawnElement = readonly [tag: string, attributes: Readonly<Record<string, unknown>>, ...DrawnNode[]];
export type DrawnNode = string | DrawnElement;

/** Renders nodes without a browser. `stand` replaces components that need one. */
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

/** Joins adjacent texts. */
function joined(nodes: readonly DrawnNode[]): DrawnNode[] {
  const all: DrawnNode[] = [];
  for (const node of nodes) {
    const last = all.at(-1);
    if (typeof last === 'string' && typeof node === 'string') all[all.length - 1] = last + node;
    else all.push(node);
  }
  return all;
}
