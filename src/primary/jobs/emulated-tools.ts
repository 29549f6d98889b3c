import type { ToolOffer, Turn } from '../cli/contract/adapter.js';
export function emulated(turn: Turn, _offer: ToolOffer, schema: string | null): { turn: Turn; schema: string } {
  return { turn, schema: schema ?? '{}' };
}
export function withoutTools(turn: Turn): Turn {
  return turn;
}
export function readAnswer(
  _value: unknown,
  _offer: ToolOffer,
  _hasSchema: boolean,
): { kind: 'text'; text: string } | { kind: 'call'; name: string; input: string } | { kind: 'fault'; fault: string } {
  return { kind: 'text', text: '' };
}
export function schemaOfCall(_offer: ToolOffer, _name: string): string {
  return '{}';
}
