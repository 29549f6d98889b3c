import { isIP } from 'node:net';
import type { Request } from 'express';

/**
 * The address that a request came from: the peer's, or what a trusted proxy says (express's `trust proxy`). An IPv4
 * address mapped into IPv6 counts as IPv4. An IPv6 client counts by its /64, which is what one site gets.
 */
export function addressOf(req: Request): string {
  const named = withoutPort(req.ip ?? '');
  const address = isIP(named) === 0 ? (req.socket.remoteAddress ?? 'local') : named;
  const plain = address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '').replace(/%.*$/, '');
  return isIP(plain) === 6 ? `${networkOf(plain)}::/64` : plain;
}

/** Some proxies add the port. */
function withoutPort(named: string): string {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/.exec(named) ?? [];
  return bracketed ?? dotted ?? named;
}

function networkOf(address: string): string {
  const [head = '', tail] = address.split('::', 2);
  const left = groups(head);
  const right = tail === undefined ? [] : groups(tail);
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0');
  return [...left, ...zeros, ...right]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

/** A dotted end counts as two groups. It never reaches the first four. */
function groups(text: string): string[] {
  return text === '' ? [] : text.split(':').flatMap((group) => (group.includes('.') ? ['0', '0'] : [group]));
}
