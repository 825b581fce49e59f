"""One start of the user's program under the guest, with all its ranks: started, spoken to, ended without remains."""
