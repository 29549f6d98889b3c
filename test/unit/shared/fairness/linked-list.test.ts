import { LinkedList } from '../../../../src/shared/fairness/linked-list.js';

function listOf(...values: string[]) {
  const list = new LinkedList<string>();
  return { list, nodes: values.map((value) => list.append(value)) };
}

describe('A linked list', () => {
  it('moves any member to its end, and retains the order of the others', () => {
    const { list, nodes } = listOf('a', 'b', 'c');
    for (const [node, order] of [
      [nodes[1], 'acb'],
      [nodes[0], 'cba'],
      [nodes[0], 'cba'],
    ] as const) {
      if (node !== undefined) list.moveToEnd(node);
      expect([...list].join('')).toBe(order);
    }
  });

  it('works again after all members have left', () => {
    const { list, nodes } = listOf('a', 'b', 'c');
    for (const node of nodes) list.remove(node);
    expect([...list]).toEqual([]);
    list.append('d');
    expect([...list]).toEqual(['d']);
  });

  it('tolerates the removal of the last yielded member during iteration', () => {
    const { list, nodes } = listOf('a', 'b', 'c');
    const seen: string[] = [];
    for (const value of list) {
      seen.push(value);
      const node = nodes.find((candidate) => candidate.value === value);
      if (node !== undefined) list.remove(node);
    }
    expect(seen).toEqual(['a', 'b', 'c']);
    expect([...list]).toEqual([]);
  });
});
