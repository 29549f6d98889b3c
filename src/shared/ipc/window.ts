/**
 * Items of one call that may be under way and not yet taken. A delta is at most 16 KiB of text, so a slow reader holds
 * 128 KiB here at most.
 */
export const callWindow = 8;
