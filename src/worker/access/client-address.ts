import { isIP } from 'node:net';
import type { Request } from 'express';

/** Every local user can call from any of the sixteen million addresses of loopback, so all of them count as this one. */
const loopback = '127.0.0.1';

/**
 * The address that a request came from: the peer's, or what a trusted proxy says (express's `trust proxy`). An IPv4
 * address mapped into IPv6 counts as IPv4. An IPv6 client counts by its /64, which is what one site gets.
 */
export function addressOf(req: Request): string {
  const named = withoutPort(req.ip ?? '');
  const address = isIP(named) === 0 ? (req.socket.remoteAddress ?? 'local') : named;
  const plain = isIP(address) === 6 ? networkOf(groupsOf(address.replace(/%.*$/, ''))) : address;
  return isIP(plain) === 4 && plain.startsWith('127.') ? loopback : plain;
}

/** Some proxies add the port. */
function withoutPort(named: string): string {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/.exec(named) ?? [];
  return bracketed ?? dotted ?? named;
}

function networkOf(groups: readonly number[]): string {
  const [high = 0, low = 0] = groups.slice(6);
  const isInFirstNetwork = groups.slice(0, 5).every((group) => group === 0);
  if (isInFirstNetwork && groups[5] === 0xffff) return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  if (isInFirstNetwork && groups[5] === 0 && high === 0 && low === 1) return loopback;
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = address.split('::', 2);
  const left = written(head);
  const right = tail === undefined ? [] : written(tail);
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => 0);
  return [...left, ...zeros, ...right];
}

/** A dotted end stands for two groups. */
function written(text: string): number[] {
  return text === ''
    ? []
    : text.split(':').flatMap((group) => (group.includes('.') ? pairOf(group) : [Number.parseInt(group, 16)]));
}

function pairOf(dotted: string): [number, number] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}
