/** Who may not see the clients of others is told that there is one. */
export function clientText(client: string | null): string {
  return client ?? 'another client';
}
