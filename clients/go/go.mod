module trivet

go 1.19
