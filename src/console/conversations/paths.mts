/** Where a conversation is in the API. */
export function pathOf(id: string): string {
  return `/chat/${encodeURIComponent(id)}`;
}
