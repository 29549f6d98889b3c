/** Items of one call that may be under way and not yet taken; a text item is at most 64 KiB. */
export const callWindow = 16;
