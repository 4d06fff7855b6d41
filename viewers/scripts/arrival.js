// Last, when everything is in place: go where the address leads, then make what waits.
arrive();
address();
idle(next);
