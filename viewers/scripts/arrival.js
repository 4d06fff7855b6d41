// Last, when everything is in place: go where the address leads.
arrive();
address();
