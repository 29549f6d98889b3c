import { LinkedList } from '../../src/primary/linked-list.js';

describe('a linked list', () => {
  function listOf(...values: string[]) {
    const list = new LinkedList<string>();
    return { list, nodes: values.map((value) => list.append(value)) };
  }

  it('moves any member to its end, and keeps the order of the others', () => {
    const { list, nodes } = listOf('a', 'b', 'c');
    for (const [node, order] of [
      [nodes[1], 'acb'],
      [nodes[0], 'cba'],
      [nodes[0], 'cba'],
    ] as const) {
      if (node !== undefined) list.moveToEnd(node);
      expect([...list].join('')).toBe(order);
    }
    expect(list.size).toBe(3);
  });

  it('is whole again after members have left', () => {
    const { list, nodes } = listOf('a', 'b', 'c');
    for (const node of nodes) list.remove(node);
    expect(list.first()).toBeNull();
    list.append('d');
    expect([...list]).toEqual(['d']);
    expect(list.size).toBe(1);
  });
});
