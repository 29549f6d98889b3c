import { atMost } from '../../shared/async.js';

/** Works like `atMost`, with a separate limit for each name. */
export function atMostOf(max: number): <T>(name: string, call: () => Promise<T>) => Promise<T> {
  const lines = new Map<string, { readonly inTurn: ReturnType<typeof atMost>; open: number }>();
  return async (name, call) => {
    const line = lines.get(name) ?? { inTurn: atMost(max), open: 0 };
    lines.set(name, line);
    line.open++;
    try {
      return await line.inTurn(call);
    } finally {
      if (--line.open === 0) lines.delete(name);
    }
  };
}
